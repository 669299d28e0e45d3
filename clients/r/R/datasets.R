#' What can be asked about
#'
#' Everything here is public, or one's own: names of columns with their bounds and categories, the
#' number of rows, which tests the custodian offers, and what is left of budgets.
#'
#' @param connection What [pt_connect()] returned.
#' @param name The name of a data set.
#' @return `pt_datasets()`: a data frame with a row for each data set: `name`, `ready`, `rows`,
#'   `columns` and `used`, the share of one's budget that is spent. `pt_dataset()`: one of them, to
#'   be asked with [pt_two_sample()] and its companions; `$facts` has all that the service tells.
#'   `pt_questions()`: a data frame with a row for each method: `question`, `method`, `about`,
#'   `options`.
#' @export
pt_datasets <- function(connection) {
  facts <- look(connection, "/datasets")$items
  column <- function(of, kind) vapply(facts, of, kind)
  data.frame(
    name = column(function(each) each$name, ""),
    ready = column(function(each) each$ready, NA),
    rows = column(function(each) as.numeric(each$rows %||% NA), 0),
    columns = column(function(each) paste(names_of(each), collapse = ", "), ""),
    used = column(function(each) as.numeric(account_of(each)$used %||% NA), 0)
  )
}

#' @rdname pt_datasets
#' @export
pt_dataset <- function(connection, name) {
  facts <- look(connection, paste0("/datasets/", encoded(name)))
  structure(list(name = facts$name, facts = facts, connection = connection),
    class = "privatest_dataset"
  )
}

#' @rdname pt_datasets
#' @export
pt_questions <- function(connection) {
  found <- look(connection, "/questions")
  found <- found[setdiff(names(found), "format")]
  rows <- lapply(names(found), function(question) {
    methods <- found[[question]]$methods
    options <- vapply(methods, function(each) paste(unlist(each$options), collapse = ", "), "")
    about <- vapply(methods, function(each) each$about, "")
    data.frame(question = question, method = names(methods), about = about, options = options)
  })
  found <- do.call(rbind, rows)
  rownames(found) <- NULL
  found
}

#' @export
print.privatest_dataset <- function(x, ...) {
  facts <- x$facts
  rows <- if (is.null(facts$rows)) "unknown" else format(facts$rows, big.mark = ",")
  cat("Data set ", x$name, ": ", rows, " rows, at most ", facts$rows_per_person,
    " of a person\n",
    sep = ""
  )
  if (!facts$ready) cat("  It cannot be asked about: ", facts$reason, "\n", sep = "")
  names <- format(names_of(facts))
  cat(paste0("  ", names, "  ", vapply(facts$columns, described, ""), "\n"), sep = "")
  invisible(x)
}

names_of <- function(facts) vapply(facts$columns, function(column) column$name, "")

account_of <- function(facts) facts$budget$own %||% facts$budget$dataset

described <- function(column) {
  if (column$type == "numeric") {
    kind <- if (column$integer) "integers" else "numbers"
    return(paste(kind, "from", format(column$bounds[[1]]), "to", format(column$bounds[[2]])))
  }
  paste0(paste(unlist(column$categories), collapse = ", "), " (", column$membership, ")")
}
