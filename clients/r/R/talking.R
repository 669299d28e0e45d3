# Requests and answers as JSON; what is lost is sent again. Everything said here may be said twice:
# looking changes nothing, and an identical request is on its way already, or answered from the
# record at no cost.

tries <- 5
first_pause <- 0.2 # seconds
longest_pause <- 60
between <- c(502, 503, 504) # of a proxy: the service itself says why, in JSON

look <- function(connection, path) converse(connection, "GET", path)

say <- function(connection, path, document) {
  converse(connection, "POST", path, to_json(document))
}

converse <- function(connection, method, path, body = NULL) {
  pause <- first_pause
  for (left in rev(seq_len(tries) - 1)) {
    reply <- tryCatch(
      connection$send(method, path, body),
      privatest_lost = function(failed) if (left) NULL else stop(failed)
    )
    if (!is.null(reply) && !(left && is_passing(reply))) {
      return(document_of(reply))
    }
    connection$sleep(if (is.null(reply)) pause else seconds_of(reply, pause))
    pause <- 2 * pause
  }
}

# Whether the same request may be answered in a moment.
is_passing <- function(reply) {
  reply$status == 429 || (reply$status %in% between && is.null(read(reply)$error))
}

seconds_of <- function(reply, pause) {
  if (grepl("^[0-9]+$", reply$after)) min(as.numeric(reply$after), longest_pause) else pause
}

read <- function(reply) {
  document <- tryCatch(from_json(reply$text), error = function(failed) list())
  if (is.list(document) && !is.null(names(document))) document else list()
}

document_of <- function(reply) {
  document <- read(reply)
  if (reply$status >= 200 && reply$status < 300 && length(document)) {
    return(document)
  }
  stop(failure_of(document, reply$status))
}
