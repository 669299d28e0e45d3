# One request over HTTP: to whom a token may be sent, and over what.

this_machine <- c("127.0.0.1", "localhost", "[::1]")
largest <- 2^28 # bytes of an answer
address <- "^(https?)://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:]+\\])(:[0-9]+)?(/[^?#@\\\\[:space:]]*)?$"

host_of <- function(url) tolower(sub(address, "\\2", url))

check_url <- function(url) {
  text <- is.character(url) && length(url) == 1 && !is.na(url)
  if (text && grepl("^https?://[^/]*@", url)) {
    refuse("url must not hold a name or a password: pass a token.")
  }
  if (!text || !grepl(address, url)) {
    refuse("url must be the address of a service: https://HOST[:PORT].")
  }
  if (startsWith(url, "http:") && !host_of(url) %in% this_machine) {
    refuse(
      "url must begin with https: over http everybody on the way reads the token and the ",
      "answers. Only this machine (localhost) may be reached without."
    )
  }
}

check_token <- function(token) {
  if (!is.character(token) || length(token) != 1 || is.na(token) || !nzchar(token)) {
    refuse("token must be given, or the environment variable PRIVATEST_TOKEN.")
  }
  if (!grepl("^[!-~]+$", token)) {
    refuse("token must be one word, as `privatest curator token` shows it.")
  }
}

# Returns the function that sends. The token lives in its environment, where nothing prints it.
sender <- function(url, token, timeout) {
  base <- paste0(sub("/+$", "", url), "/api/v1")
  force(token)
  force(timeout)
  function(method, path, body = NULL) {
    asked <- httr2::req_method(httr2::request(paste0(base, path)), method)
    asked <- httr2::req_auth_bearer_token(asked, token)
    asked <- httr2::req_user_agent(asked, "privatest (R)")
    asked <- httr2::req_timeout(asked, timeout)
    asked <- httr2::req_error(asked, is_error = function(reply) FALSE) # an answer as well
    # no redirect: a token is for the address that somebody typed
    asked <- httr2::req_options(asked, followlocation = 0L, maxfilesize_large = largest)
    if (host_of(url) %in% this_machine) asked <- httr2::req_options(asked, noproxy = "*")
    if (!is.null(body)) asked <- httr2::req_body_raw(asked, body, "application/json")
    got <- tryCatch(
      httr2::req_perform(asked),
      error = function(failed) stop(lost(url, failed, token))
    )
    list(
      status = httr2::resp_status(got),
      after = httr2::resp_header(got, "retry-after") %||% "",
      text = text_of(got)
    )
  }
}

text_of <- function(got) {
  body <- tryCatch(httr2::resp_body_raw(got), error = function(empty) raw())
  text <- tryCatch(rawToChar(body), error = function(zeros) "")
  Encoding(text) <- "UTF-8"
  text
}

lost <- function(url, failed, token) {
  why <- conditionMessage(failed$parent %||% failed)
  why <- gsub(token, "...", strsplit(why, "\n", fixed = TRUE)[[1]][1], fixed = TRUE)
  if (grepl("certificate", why, ignore.case = TRUE)) {
    return(service_failure(paste0("The certificate of ", url, " cannot be verified: ", why, ".")))
  }
  service_failure(paste0(url, " does not answer (", why, ")."), kind = "lost")
}
