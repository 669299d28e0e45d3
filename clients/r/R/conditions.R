# Refusals and failures as conditions of R, in the service's own words.

#' Why there is no answer
#'
#' Everything that goes wrong is a condition of class `privatest_error`, with the service's own
#' words as its message. `tryCatch(..., privatest_budget_error = function(e) e$left)` tells them
#' apart.
#'
#' @details
#' \describe{
#'   \item{`privatest_parameter_error`}{a parameter cannot be used; nothing was spent}
#'   \item{`privatest_data_error`}{data does not fit its public description}
#'   \item{`privatest_privacy_error`}{the answer would break the guarantee}
#'   \item{`privatest_budget_error`}{it costs more than is left; nothing was spent. Has `asked` and
#'     `left`, lists of numbers}
#'   \item{`privatest_request_failed`}{it did not end well. Has `id`, for the custodian, and
#'     `spent`, whether its budget is spent}
#'   \item{`privatest_ledger_error`, `privatest_engine_error`}{the service itself is in trouble}
#'   \item{`privatest_service_error`}{the service cannot be reached, does not know the token, or
#'     cannot be understood. Has `status`, that of its answer, 0 if there was none, and `name`}
#' }
#' @name privatest-conditions
NULL

kinds <- c(
  DataError = "data_error", EngineError = "engine_error", LedgerError = "ledger_error",
  ParameterError = "parameter_error", PrivacyError = "privacy_error"
)

# No call: it may hold a token that somebody typed.
failure <- function(kind, words, ...) {
  classes <- c(paste0("privatest_", kind), "privatest_error", "error", "condition")
  structure(class = classes, list(message = words, call = NULL, ...))
}

refuse <- function(...) stop(failure("parameter_error", paste0(...)))

service_failure <- function(words, status = 0, name = "", kind = NULL) {
  failure(c(kind, "service_error"), words, status = status, name = name)
}

# Says where a job goes on, if watching it failed.
with_note <- function(condition, words) {
  condition$message <- paste0(conditionMessage(condition), "\n", words)
  condition
}

failure_of <- function(document, status = 0) {
  name <- document$error %||% ""
  words <- document$message %||% "The service gave no answer that can be read."
  if (name == "BudgetError") {
    sums <- lapply(document[c("asked", "left")], function(sum) lapply(sum, as.numeric))
    return(failure("budget_error", words, asked = sums$asked, left = sums$left))
  }
  if (name == "RequestFailed" || all(c("id", "spent") %in% names(document))) {
    found <- regmatches(words, regexpr("\\b[0-9a-f]{32}\\b", words, perl = TRUE))
    number <- document$id %||% (if (length(found)) found else "unknown")
    spent <- document$spent %||% !grepl("nothing was spent", words, fixed = TRUE)
    return(failure("request_failed", failed_words(number, spent), id = number, spent = spent))
  }
  if (name %in% names(kinds)) {
    return(failure(kinds[[name]], words))
  }
  if (status == 401) words <- paste(words, "`privatest curator token NAME` makes one.")
  service_failure(words, status, name)
}

failed_words <- function(number, spent) {
  cost <- if (spent) "its budget is spent" else "nothing was spent"
  paste0(
    "The request failed, and nothing was released; ", cost,
    ". The custodian finds the reason by its id, ", number, "."
  )
}
