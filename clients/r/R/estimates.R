# Means, shares and quantiles; tests of each column; and releases of synthetic data.

estimate_of <- function(document) {
  quantile <- !is.null(document$quantile)
  terms <- if (quantile) document$column else unlist(document$columns)
  ends <- ends_of(document)
  values <- data.frame(
    term = terms %||% "value",
    estimate = numbers(as_list(document[if (quantile) "quantile" else "mean"])),
    conf.low = ends[, 1], conf.high = ends[, 2]
  )
  what <- document$estimated %||% "mean"
  if (quantile) what <- paste0("quantile (q = ", document$q, ")")
  found <- list(what = what, values = values, conf.level = document$confidence, n = document$n)
  found$covariance <- if (!quantile) matrix(numbers(unlist(document$covariance)), length(terms))
  structure(c(found, said(document)), class = "privatest_estimate")
}

#' @export
print.privatest_estimate <- function(x, ...) {
  level <- paste0(format(100 * x$conf.level), " percent confidence")
  cat("\n\tPrivate ", x$what, ", ", level, "\n\n", sep = "")
  print(x$values, row.names = FALSE, ...)
  cat("\n")
  cat(privacy_lines(x), "", sep = "\n")
  invisible(x)
}

columns_of <- function(document) {
  order <- unlist(document$order)
  results <- lapply(order, function(name) {
    htest_of(c(document$columns[[name]], list(compared = name, dataset = document$dataset)))
  })
  found <- list(results = stats::setNames(results, order), adjustment = document$adjustment)
  structure(c(found, said(document)), class = "privatest_columns")
}

#' @export
print.privatest_columns <- function(x, ...) {
  cat("\n\tEach column on its own, p-values adjusted (", x$adjustment, ")\n\n", sep = "")
  print(as.data.frame(x)[c("term", "p.value", "reject")], row.names = FALSE, ...)
  cat("\n")
  cat(privacy_lines(x), "", sep = "\n")
  invisible(x)
}

release_of <- function(document, job) {
  facts <- document[setdiff(names(document), c("parquet", "format"))]
  found <- list(facts = facts, file = jsonlite::base64_dec(document$parquet), job = job)
  structure(c(found, said(document)), class = "privatest_release")
}

#' @export
print.privatest_release <- function(x, ...) {
  cat("Synthetic data of ", x$dataset, ": ", length(x$file), " bytes of Parquet\n", sep = "")
  cat(privacy_lines(x), sep = "\n")
  invisible(x)
}

#' Use synthetic data
#'
#' What was released may be used without end: nothing here costs anything.
#'
#' @param release What [pt_release()] returned.
#' @param path Where to write it: a Parquet file, for `privatest query`, and for the rows alone any
#'   reader of Parquet.
#' @param question What is asked of the rows, in the words of `privatest query`: `"mean"`,
#'   `"share"`, `"quantile"`, `"correlation"` and others.
#' @param ... Its words, such as the name of a column.
#' @param where,by Which rows, and groups of rows: `where = "age < 50"`, `by = "plan"`.
#' @return `pt_write()`: the path. `pt_query()`: the answer as a list, with its error.
#' @export
pt_write <- function(release, path) {
  writeBin(release$file, path)
  invisible(path)
}

#' @rdname pt_write
#' @export
pt_query <- function(release, question, ..., where = NULL, by = NULL) {
  job <- release$job
  if (is.null(job)) refuse("release must be an answer: a rehearsal cannot be asked.")
  words <- lapply(list(...), as.character)
  asked <- list(question = question, words = words, where = where, by = by)
  asked <- Filter(Negate(is.null), asked)
  document <- say(job$connection, paste0("/jobs/", job$id, "/query"), asked)
  document[setdiff(names(document), "format")]
}
