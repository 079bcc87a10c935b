import Base

@testable import HTTPServer

/// A response of a route, with parsed JSON.
struct ParsedResponse: Sendable {
    let status: Int
    let headers: [ServerRequest.Field]
    let body: JSONValue?
    let text: String

    init(_ response: ServerResponse) {
        status = response.status
        headers = response.headers
        body = JSONValue.object(in: response.body)
        text = String(decoding: response.body, as: UTF8.self)
    }

    subscript(name: String) -> JSONValue? { body?[name] }

    var data: JSONValue? { body?["data"] }

    /// The access token of a response to a service.
    var token: String? { body?["access_token"]?.string }

    /// The status and the code of an error of the internal routes, such as "409 disconnected".
    var error: String { "\(status) \(body?["error"]?.string ?? "")" }

    /// The status and the code of an error of PayPulse's routes, such as "401 INVALID_TOKEN". For a success
    /// it is the status alone.
    var statusAndCode: String {
        guard let code = body?["error"]?["code"]?.string else { return "\(status)" }
        return "\(status) \(code)"
    }

    /// The status and the detail of an error of the session routes. For a success it is the status alone.
    var statusAndDetail: String {
        guard let detail = body?["detail"]?.string else { return "\(status)" }
        return "\(status) \(detail)"
    }

    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}
