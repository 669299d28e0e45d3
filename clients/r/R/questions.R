#' Ask about a data set
#'
#' Each function asks one question, by names of columns. `pt_questions()` lists the methods with
#' their options, and the curator decides which of them it offers.
#'
#' @param data A data set of [pt_dataset()].
#' @param columns,column,x,y,given,before,after Names of columns. `pt_paired()` tests `after`
#'   minus `before`; `given` asks whether `x` and `y` are related beyond what these columns tell.
#' @param group The column that tells the groups apart.
#' @param groups Which categories of `group` are compared; all of them by default.
#' @param epsilon,delta What the answer may cost.
#' @param method How it is answered; by default the usual method of the question.
#' @param dist A distribution such as `"norm(40, 10)"`.
#' @param family A family of them, such as `"norm"`, with its parameters unknown.
#' @param shares Expected shares of categories: `c(basic = 0.5, plus = 0.5)`, or `"equal"`.
#' @param q Which quantile.
#' @param success The category that counts, for a share instead of a mean.
#' @param ... What else the request says: `alpha`, `where = list(region = "north")`,
#'   `alternative`, `each_column = "holm"`, `adjacency`, `release = "decision"`, and the other
#'   options of the method.
#' @param then What is done with the request: [pt_run()], or [pt_price()], [pt_rehearse()],
#'   [pt_submit()], or a function of your own of a connection and a request.
#' @return What `then` returns; by default the result, see [pt_run()].
#' @section Privacy:
#' Rows stay with the curator, which charges the request; what comes back is private already.
#' @examples
#' \dontrun{
#' visits <- pt_dataset(pt_connect("https://curator.example"), "visits")
#' pt_two_sample(visits, c("visits", "age"), group = "plan", epsilon = 0.5, then = pt_price)
#' pt_two_sample(visits, c("visits", "age"), group = "plan", epsilon = 0.5)
#' pt_paired(visits, "age", "visits", epsilon = 0.25, method = "wilcoxon", alternative = "less")
#' pt_quantile(visits, "age", epsilon = 0.25)
#' }
#' @export
pt_two_sample <- function(data, columns = NULL, group, epsilon, ..., groups = NULL,
                          method = "mmd", delta = NULL, then = pt_run) {
  asking(data, then,
    question = "two-sample", method = method, columns = columns, group = group, groups = groups,
    epsilon = epsilon, delta = delta, ...
  )
}

#' @rdname pt_two_sample
#' @export
pt_independence <- function(data, x, y, epsilon, ..., given = NULL,
                            method = if (is.null(given)) "hsic" else "gcm", delta = NULL,
                            then = pt_run) {
  asking(data, then,
    question = "independence", method = method, x = x, y = y, given = given,
    epsilon = epsilon, delta = delta, ...
  )
}

#' @rdname pt_two_sample
#' @export
pt_paired <- function(data, before, after, epsilon, ..., method = "ks", delta = NULL,
                      then = pt_run) {
  asking(data, then,
    question = "paired", method = method, before = before, after = after,
    epsilon = epsilon, delta = delta, ...
  )
}

#' @rdname pt_two_sample
#' @export
pt_fit <- function(data, column, epsilon, ..., dist = NULL, family = NULL, shares = NULL,
                   delta = NULL, then = pt_run) {
  asking(data, then,
    question = "fit", column = column, dist = dist, family = family, shares = shares,
    epsilon = epsilon, delta = delta, ...
  )
}

#' @rdname pt_two_sample
#' @export
pt_mean <- function(data, columns = NULL, epsilon, ..., success = NULL, delta = NULL,
                    then = pt_run) {
  asking(data, then,
    question = "mean", columns = columns, success = success, epsilon = epsilon, delta = delta, ...
  )
}

#' @rdname pt_two_sample
#' @export
pt_quantile <- function(data, column, q = 0.5, epsilon, ..., delta = NULL, then = pt_run) {
  asking(data, then,
    question = "mean", columns = column, q = q, epsilon = epsilon, delta = delta, ...
  )
}

#' @rdname pt_two_sample
#' @export
pt_release <- function(data, columns = NULL, epsilon, ..., method = "auto", delta = NULL,
                       then = pt_run) {
  asking(data, then,
    question = "release", method = method, columns = columns, epsilon = epsilon, delta = delta, ...
  )
}

asking <- function(data, then, ...) {
  if (!inherits(data, "privatest_dataset")) {
    refuse("data must be a data set of a curator: pt_dataset(connection, NAME).")
  }
  then(data$connection, pt_request(data, ...))
}
