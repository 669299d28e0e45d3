# Arguments as the plain values of a request, and documents as lists.

lists <- c("columns", "groups", "x", "y", "given")

from_json <- function(text) jsonlite::fromJSON(text, simplifyVector = FALSE)

to_json <- function(document) {
  as.character(jsonlite::toJSON(document, auto_unbox = TRUE, null = "null", json_verbatim = TRUE))
}

# What a request says for one argument; a vector of several values is a list there, and so is
# list(1). Numbers are written so that they are read back as they are.
plain <- function(name, value) {
  if (is.factor(value)) value <- as.character(value)
  if (is.matrix(value)) value <- lapply(seq_len(nrow(value)), function(row) as.list(value[row, ]))
  if (name %in% lists || is.list(value) || length(value) > 1) {
    return(lapply(as.list(value), function(item) plain("", item)))
  }
  known <- is.character(value) || is.numeric(value) || is.logical(value)
  if (!known || length(value) != 1 || is.na(value) || is.infinite(value)) {
    named <- if (nzchar(name)) name else "each value"
    refuse(named, " must be text, numbers, or TRUE and FALSE: it is sent.")
  }
  if (is.numeric(value)) shortest(value) else unname(value)
}

shortest <- function(number) {
  for (digits in 15:17) {
    text <- formatC(number, digits = digits, format = "g", width = 1)
    if (as.numeric(text) == number) break
  }
  structure(text, class = "json")
}

# Expected shares as a request writes them: c(basic = 0.5, plus = 0.5).
shares_text <- function(shares) {
  if (is.character(shares)) {
    return(shares)
  }
  if (!is.numeric(shares) || is.null(names(shares))) {
    refuse("shares must be named by categories, such as c(basic = 0.5, plus = 0.5), or \"equal\".")
  }
  if (any(grepl(",", names(shares), fixed = TRUE))) {
    refuse("shares: a category with a comma cannot be named in a request.")
  }
  paste(names(shares), vapply(shares, shortest, ""), sep = "=", collapse = ",")
}
