#' privatest: private hypothesis tests, asked of a curator
#'
#' A curator keeps data that you may not see, and answers questions about it with
#' differential privacy. `pt_connect()` reaches its service, `pt_dataset()` describes a data set,
#' and `pt_two_sample()` and its companions ask. Columns are named; rows stay where they are.
#'
#' @section Privacy:
#' Each answer is charged to a budget. The same request again is answered from the record, at no
#' cost. So a request that is sent twice, for a lost connection, is charged once; only if the first
#' one failed after it was charged, the second is charged too.
#' @keywords internal
"_PACKAGE"

`%||%` <- function(x, y) if (is.null(x)) y else x
