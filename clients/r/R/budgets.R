#' What is left, and what was spent
#'
#' @param connection What [pt_connect()] returned.
#' @param name The name of a data set.
#' @param last How many of the newest.
#' @return `pt_budget()`: a list with `own` and `whole`, one's own budget and that of all analysts
#'   together, and `left`, what a request may cost at most; it prints as a bar for each. For
#'   custodians and auditors, `pt_budgets()`: a data frame with a row for each data set (`analyst`
#'   is `NA`) and each analyst, and `pt_history()`: a data frame with the entries of the ledger,
#'   newest first; `entry` has each as a list.
#' @export
pt_budget <- function(connection, name) {
  facts <- look(connection, paste0("/datasets/", encoded(name)))$budget
  if (is.null(facts)) refuse("data set '", name, "' is not registered, and has no budget yet.")
  accounts <- Filter(Negate(is.null), list(own = facts$own, whole = facts$dataset))
  left <- lapply(accounts, function(account) lapply(account$left, as.numeric))
  sums <- unique(unlist(lapply(left, names)))
  least <- function(sum) min(unlist(lapply(left, function(account) account[[sum]])))
  structure(
    list(
      dataset = name, own = facts$own, whole = facts$dataset,
      left = vapply(sums, least, 0)
    ),
    class = "privatest_budget"
  )
}

#' @export
print.privatest_budget <- function(x, ...) {
  marks <- if (isTRUE(l10n_info()[["UTF-8"]])) c("\u2588", "\u2591") else c("#", ".")
  cat("Budget of ", x$dataset, ":\n", sep = "")
  for (part in c("own", "whole")) {
    account <- x[[part]]
    if (is.null(account)) next
    full <- round(24 * account$used)
    bar <- paste(rep(marks, c(full, 24 - full)), collapse = "")
    name <- c(own = "yours ", whole = "of all")[[part]]
    percent <- formatC(100 * account$used, digits = 1, format = "f", width = 5)
    cat("  ", name, "  ", bar, "  ", percent, "%  ", spent_words(account), "\n", sep = "")
  }
  invisible(x)
}

spent_words <- function(account) {
  words <- character()
  for (sum in c("epsilon", "delta")) {
    spent <- as.numeric(account$spent[[sum]])
    total <- as.numeric(account[[sum]])
    if (total > 0) words <- c(words, paste(sum, format(spent), "of", format(total)))
  }
  paste(words, collapse = ", ")
}

#' @rdname pt_budget
#' @export
pt_budgets <- function(connection) {
  rows <- lapply(look(connection, "/budgets")$items, function(each) {
    analysts <- lapply(names(each$analysts), function(name) {
      account_row(each$dataset, name, each$analysts[[name]])
    })
    do.call(rbind, c(list(account_row(each$dataset, NA_character_, each)), analysts))
  })
  do.call(rbind, rows)
}

account_row <- function(dataset, analyst, account) {
  sums <- lapply(account[c("epsilon", "delta")], as.numeric)
  spent <- lapply(account$spent[c("epsilon", "delta")], as.numeric)
  data.frame(
    dataset = dataset, analyst = analyst, epsilon = sums$epsilon, delta = sums$delta,
    spent_epsilon = spent$epsilon, spent_delta = spent$delta, used = account$used
  )
}

#' @rdname pt_budget
#' @export
pt_history <- function(connection, name, last = 50) {
  path <- paste0("/history?dataset=", encoded(name), "&last=", as.integer(last))
  entries <- look(connection, path)$items
  text <- function(key) vapply(entries, function(each) as.character(each[[key]] %||% NA), "")
  found <- data.frame(
    sequence = as.numeric(text("sequence")), time = text("time"), kind = text("kind"),
    analyst = text("analyst"), epsilon = as.numeric(text("epsilon")),
    delta = as.numeric(text("delta"))
  )
  found$entry <- entries
  found
}
