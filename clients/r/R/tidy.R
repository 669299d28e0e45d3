# Results as data frames, with broom's names of columns.

#' Results as data frames
#'
#' `tidy()` and `glance()` of 'generics' and 'broom' take results of [pt_run()];
#' `as.data.frame()` is the same as `tidy()`, and needs neither.
#'
#' @param x A result of [pt_run()].
#' @param row.names,optional,... Not used.
#' @return A data frame. `tidy()` has a row for each estimate, or one for the test: `term` if there
#'   are several, `estimate` (and `estimate1`, `estimate2` for two groups), `statistic`, `p.value`,
#'   `conf.low`, `conf.high`, `method` and `alternative`, as far as they were released; `p.value` is
#'   `NA` for a decision. `glance()` has one row: `statistic`, `p.value`, `reject`, `alpha`,
#'   `nobs`, `epsilon`, `delta` and `method`.
#' @name tidy.privatest
NULL

#' @rdname tidy.privatest
#' @export
as.data.frame.privatest_htest <- function(x, row.names = NULL, optional = FALSE, ...) {
  columns <- list(
    statistic = unname(x$statistic), p.value = x$p.value %||% NA_real_,
    method = x$method, alternative = x$alternative
  )
  columns <- data.frame(Filter(Negate(is.null), columns))
  values <- estimate_columns(x)
  if (is.null(values)) columns else ordered_columns(cbind(values, columns))
}

estimate_columns <- function(x) {
  if (!length(x$estimate)) {
    return(NULL)
  }
  ends <- ends_of(x$released)
  several <- !is.null(ends) && nrow(ends) == length(x$estimate) && length(x$estimate) > 1
  if (several) {
    terms <- names(x$estimate)
    values <- data.frame(term = terms, estimate = unname(x$estimate))
  } else if (length(x$estimate) == 2) {
    values <- data.frame(estimate1 = x$estimate[[1]], estimate2 = x$estimate[[2]])
    if (!is.null(x$released$difference)) values$estimate <- unlist(x$released$difference)
  } else if (length(x$estimate) == 1) {
    values <- data.frame(estimate = x$estimate[[1]])
  } else {
    return(data.frame(term = names(x$estimate), estimate = unname(x$estimate)))
  }
  if (!is.null(ends) && nrow(ends) == nrow(values)) {
    values <- cbind(values, data.frame(conf.low = ends[, 1], conf.high = ends[, 2]))
  }
  values
}

ordered_columns <- function(frame) {
  order <- c(
    "term", "estimate", "estimate1", "estimate2", "statistic", "p.value", "conf.low",
    "conf.high", "method", "alternative"
  )
  frame[intersect(order, names(frame))]
}

#' @rdname tidy.privatest
#' @export
as.data.frame.privatest_estimate <- function(x, row.names = NULL, optional = FALSE, ...) x$values

#' @rdname tidy.privatest
#' @export
as.data.frame.privatest_columns <- function(x, row.names = NULL, optional = FALSE, ...) {
  rows <- lapply(x$results, glanced)
  found <- cbind(data.frame(term = names(x$results)), do.call(rbind, rows))
  rownames(found) <- NULL
  found
}

#' @rdname tidy.privatest
#' @exportS3Method generics::tidy
tidy.privatest_htest <- function(x, ...) as.data.frame(x)

#' @rdname tidy.privatest
#' @exportS3Method generics::tidy
tidy.privatest_estimate <- function(x, ...) as.data.frame(x)

#' @rdname tidy.privatest
#' @exportS3Method generics::tidy
tidy.privatest_columns <- function(x, ...) as.data.frame(x)

#' @rdname tidy.privatest
#' @exportS3Method generics::glance
glance.privatest_htest <- function(x, ...) glanced(x)

#' @rdname tidy.privatest
#' @exportS3Method generics::glance
glance.privatest_estimate <- function(x, ...) {
  data.frame(nobs = x$n, conf.level = x$conf.level, epsilon = x$epsilon, delta = x$delta)
}

#' @rdname tidy.privatest
#' @exportS3Method generics::glance
glance.privatest_columns <- function(x, ...) {
  data.frame(
    tests = length(x$results), adjustment = x$adjustment, epsilon = x$epsilon, delta = x$delta
  )
}

glanced <- function(x) {
  data.frame(
    statistic = unname(x$statistic) %||% NA_real_, p.value = x$p.value %||% NA_real_,
    reject = x$reject, alpha = x$alpha, nobs = sum(unlist(x$sizes)), epsilon = x$epsilon,
    delta = x$delta, method = x$method
  )
}
