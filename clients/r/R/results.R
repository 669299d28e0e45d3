# From a document to a result: tests are htest objects, means and quantiles estimates.

result_of <- function(document, job = NULL) {
  has <- function(...) all(c(...) %in% names(document))
  if (has("reject", "null_hypothesis")) {
    return(htest_of(document))
  }
  if (has("columns", "adjustment")) {
    return(columns_of(document))
  }
  if (has("mean", "region_shape") || has("quantile", "q")) {
    return(estimate_of(document))
  }
  if (has("parquet")) {
    return(release_of(document, job))
  }
  stop(service_failure("The answer cannot be read: update the package privatest."))
}

htest_of <- function(document) {
  parameters <- document$parameters
  estimates <- document$estimates %||% list()
  about <- about_estimate(estimates, parameters)
  found <- list(
    statistic = if (!is.null(document$statistic)) c(statistic = document$statistic),
    p.value = document$pvalue,
    conf.int = interval_of(estimates, parameters, document$alpha),
    estimate = about$estimate,
    null.value = null_of(about$null, parameters),
    alternative = alternative_of(parameters),
    method = document$method,
    data.name = document$compared %||% document$dataset %||% "made-up rows",
    # not estimates and parameters: `$` takes names in part, and print.htest asks for `parameter`
    released = estimates, settings = parameters
  )
  found <- c(Filter(Negate(is.null), found), said(document))
  structure(found, class = c("privatest_htest", "htest"))
}

# What a document says besides its numbers, and what the numbers cost.
said <- function(document) {
  keys <- c(
    "reject", "alpha", "null_hypothesis", "verdict", "epsilon", "delta", "sizes", "unit",
    "adjacency", "guarantee", "level", "noise_to_chance", "noise_note", "interval_widening",
    "simulated", "dataset", "id", "recorded", "made_up_rows"
  )
  document[intersect(keys, names(document))]
}

# What an interval may be of: what print() and null.value call it, and whether 0 is the hypothesis.
estimated <- list(
  difference = "difference", mean = "mean", tau = "tau", rho = "rho", correlation = "correlation",
  slope = "slope", proportion = "proportion", cramers_v = "Cramer's V", shift = "shift",
  partial_covariance = "partial covariance", shares = "share"
)
about_zero <- c("difference", "tau", "rho", "correlation", "slope", "shift", "partial_covariance")

about_estimate <- function(estimates, parameters) {
  what <- Find(function(name) name %in% names(estimates), names(estimated))
  if (is.null(what)) {
    return(list(estimate = named(estimates$proportions, parameters, "proportion")))
  }
  paired <- isTRUE(parameters$paired)
  null <- if (what %in% about_zero) estimated[[what]]
  if (paired) null <- "mean difference"
  if ("mean_x" %in% names(estimates) && length(estimates$mean_x) == 1) {
    means <- c("mean of x" = unlist(estimates$mean_x), "mean of y" = unlist(estimates$mean_y))
    return(list(estimate = means, null = "difference in means"))
  }
  if ("proportions" %in% names(estimates)) {
    shares <- named(estimates$proportions, parameters, "proportion")
    return(list(estimate = shares, null = "difference in proportions"))
  }
  name <- if (paired) "mean difference" else estimated[[what]]
  list(estimate = named(estimates[[what]], parameters, name), null = null)
}

# Values with the public names that the parameters have for them.
named <- function(values, parameters, name) {
  values <- numbers(values)
  if (length(values) <= 1) {
    return(if (length(values)) stats::setNames(values, name))
  }
  for (key in c("group_names", "columns", "categories")) {
    found <- unlist(parameters[[key]])
    if (length(found) == length(values)) {
      return(stats::setNames(values, found))
    }
  }
  stats::setNames(values, paste(name, seq_along(values)))
}

# JSON has no infinity: an interval without that end has no number there.
numbers <- function(values, missing = NA_real_) {
  found <- unlist(lapply(as.list(values), function(each) if (is.null(each)) missing else each))
  if (is.null(found)) numeric() else as.numeric(found)
}

# The ends of intervals: two numbers, or a matrix with two columns.
ends_of <- function(estimates) {
  if (!all(c("lower", "upper") %in% names(estimates))) {
    return(NULL)
  }
  ends <- function(key, missing) numbers(as_list(estimates[key]), missing)
  cbind(ends("lower", -Inf), ends("upper", Inf))
}

# One number or none, as well as several.
as_list <- function(one) if (is.list(one[[1]])) one[[1]] else one

interval_of <- function(estimates, parameters, alpha) {
  ends <- ends_of(estimates)
  if (is.null(ends) || nrow(ends) != 1) {
    return(NULL)
  }
  structure(as.vector(ends), conf.level = parameters$interval_level %||% (1 - alpha))
}

alternative_of <- function(parameters) {
  if (!is.null(parameters$low) && !is.null(parameters$high)) {
    return("equivalence")
  }
  words <- parameters$alternative
  if (identical(words, "two-sided")) "two.sided" else words
}

null_of <- function(name, parameters) {
  if (identical(alternative_of(parameters), "equivalence")) {
    bounds <- c(parameters$low, parameters$high)
    return(stats::setNames(bounds, c("lower bound", "upper bound")))
  }
  if (!is.null(name) && !is.null(parameters$alternative)) stats::setNames(0, name)
}

#' @export
print.privatest_htest <- function(x, ...) {
  NextMethod()
  if (!is.null(x$verdict)) cat(wrapped(x$verdict), sep = "\n")
  cat(privacy_lines(x), "", sep = "\n")
  invisible(x)
}

# The sentence on privacy, and whether the rows were real.
privacy_lines <- function(x) {
  if (isTRUE(x$made_up_rows)) {
    return("A rehearsal on made-up rows: it says nothing about the data, and cost nothing.")
  }
  record <- if (isTRUE(x$recorded)) "It was answered from the record, at no cost."
  wrapped(c(x$guarantee, record, x$noise_note))
}

wrapped <- function(text) unlist(lapply(text, strwrap, width = 78))
