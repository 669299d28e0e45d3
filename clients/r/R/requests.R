#' Say what is asked
#'
#' [pt_two_sample()] and its companions make requests too; this one takes every word that a curator
#' knows (see [pt_questions()]).
#'
#' @param data A data set of [pt_dataset()], or its name.
#' @param ... All that the request says, by name: `question` (`"two-sample"`, `"independence"`,
#'   `"paired"`, `"fit"`, `"mean"` or `"release"`), `method`, columns, `epsilon`, `delta`, `alpha`,
#'   `where = list(region = "north")`, and the options of the method. What is `NULL` is left out. A
#'   list of one value is `list(1)`.
#' @return A request, for [pt_price()], [pt_rehearse()], [pt_run()] and [pt_submit()].
#' @examples
#' pt_request("visits",
#'   question = "two-sample", method = "mmd", columns = "age", group = "plan", epsilon = 0.5
#' )
#' @export
pt_request <- function(data, ...) {
  given <- list(...)
  if (length(given) && (is.null(names(given)) || !all(nzchar(names(given))))) {
    refuse("every part of a request must have its name.")
  }
  given <- Filter(Negate(is.null), given)
  if (!is.null(given$shares)) given$shares <- shares_text(given$shares)
  if (identical(given$alternative, "two.sided")) given$alternative <- "two-sided"
  if (!is.null(given$where)) given$where <- as.list(given$where)
  name <- if (inherits(data, "privatest_dataset")) data$name else data
  document <- c(list(dataset = name), given)
  structure(Map(plain, names(document), document), class = "privatest_request")
}

#' @export
print.privatest_request <- function(x, ...) {
  cat(jsonlite::prettify(to_json(unclass(x)), indent = 2))
  invisible(x)
}

#' What a request costs, and what its answer looks like
#'
#' Nothing is spent. A rehearsal runs the request on rows that are made up.
#'
#' @param connection What [pt_connect()] returned.
#' @param request What [pt_request()] returned.
#' @return `pt_price()`: a list with `epsilon`, `delta`, `part` (the part of the data that is
#'   charged), `affordable`, and `recorded`, whether the answer is known already and costs nothing.
#'   `pt_rehearse()`: a result as [pt_run()] returns it, marked.
#' @export
pt_price <- function(connection, request) {
  document <- say(connection, "/price", unclass(request))
  structure(document[setdiff(names(document), "format")], class = "privatest_price")
}

#' @export
print.privatest_price <- function(x, ...) {
  delta <- if (x$delta > 0) paste0(", delta = ", format(x$delta)) else ""
  about <- if (is.null(x$part)) "" else paste0(", for the part ", x$part)
  cat("It costs epsilon = ", format(x$epsilon), delta, about, " of ", x$dataset, ". ", sep = "")
  words <- if (x$recorded) {
    "The answer is in the record: asking again costs nothing."
  } else if (x$affordable) {
    "There is as much left."
  } else {
    "There is not as much left."
  }
  cat(words, "\n", sep = "")
  invisible(x)
}

#' @rdname pt_price
#' @export
pt_rehearse <- function(connection, request) {
  result_of(say(connection, "/rehearse", unclass(request)))
}
