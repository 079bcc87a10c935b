internal import HTTPServer

/// The errors of the status page, as a text for people.
extension ServiceError {
    var pageResponse: ServerResponse {
        let form = InternalErrorForm(self)
        var response = ServerResponse.text("\(form.message)\n", status: form.status)
        response.headers += MonitoringHandler.pageHeaders
        // A browser asks its user for both (RFC 7617).
        if form.status == 401 {
            response.headers.append(("WWW-Authenticate", #"Basic realm="refresh-worker", charset="UTF-8""#))
        }
        if let retryAfter { response.headers.append(retryAfter.retryAfter) }
        return response
    }
}
