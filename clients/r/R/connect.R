#' Reach the service of a curator
#'
#' Nothing is sent yet. Certificates are verified, `http://` is taken only for this machine, and a
#' redirect is not followed: whoever reads a token can ask in your name.
#'
#' @param url The address of `privatest serve`: `https://HOST`, or `http://` on this machine.
#' @param token Who asks: what `privatest curator token NAME` showed. By default the environment
#'   variable `PRIVATEST_TOKEN`, so that it stands in no script.
#' @param timeout Seconds to wait for each answer of the service; a request itself may take longer.
#' @param connection What `pt_connect()` returned.
#' @return `pt_connect()`: a connection. Printing it never shows the token; saving it to a file
#'   would, so connect anew instead. `pt_me()`: a list with `name` and `scopes`.
#' @examples
#' connection <- pt_connect("https://curator.example", "pt_secret") # nothing is sent yet
#' connection
#' @export
pt_connect <- function(url, token = Sys.getenv("PRIVATEST_TOKEN"), timeout = 30) {
  check_url(url)
  check_token(token)
  if (!is.numeric(timeout) || length(timeout) != 1 || is.na(timeout) || timeout <= 0) {
    refuse("timeout must be a number above 0.")
  }
  new_connection(url, sender(url, token, timeout))
}

new_connection <- function(url, send, sleep = Sys.sleep) {
  structure(list(url = url, send = send, sleep = sleep), class = "privatest_connection")
}

#' @export
print.privatest_connection <- function(x, ...) {
  cat("<client of ", x$url, ">\n", sep = "")
  invisible(x)
}

#' @export
format.privatest_connection <- function(x, ...) paste0("<client of ", x$url, ">")

#' @rdname pt_connect
#' @export
pt_me <- function(connection) {
  document <- look(connection, "/me")
  list(name = document$name, scopes = unlist(document$scopes))
}

encoded <- function(text) utils::URLencode(as.character(text), reserved = TRUE)
