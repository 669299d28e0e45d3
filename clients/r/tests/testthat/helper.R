# A running service is asked if PRIVATEST_TEST_URL says where one is, with the small data set
# `people` of the project's own tests; the rest needs none.
service <- function(token = "PRIVATEST_TEST_TOKEN", url = "PRIVATEST_TEST_URL") {
  skip_if(Sys.getenv(url) == "", "no service is running: PRIVATEST_TEST_URL is not set")
  pt_connect(Sys.getenv(url), Sys.getenv(token))
}

people <- function(...) pt_dataset(service(...), "people")

spent <- function(connection) {
  as.numeric(pt_budget(connection, "people")$own$spent$epsilon)
}

# A connection that answers what it is told to, and remembers what was asked and how long it slept.
scripted <- function(...) {
  replies <- list(...)
  seen <- new.env()
  seen$bodies <- list()
  seen$pauses <- numeric()
  send <- function(method, path, body = NULL) {
    seen$bodies <- c(seen$bodies, list(body))
    reply <- replies[[length(seen$bodies)]]
    if (identical(reply, "lost")) stop(service_failure("It does not answer.", kind = "lost"))
    reply
  }
  sleep <- function(seconds) seen$pauses <- c(seen$pauses, seconds)
  list(connection = new_connection("https://curator.example", send, sleep), seen = seen)
}

reply <- function(text, status = 200, after = "") list(status = status, after = after, text = text)

shown <- function(x) paste(capture.output(print(x)), collapse = "\n")
