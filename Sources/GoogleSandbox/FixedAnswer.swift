/// An answer that does not depend on the request.
struct FixedAnswer: Equatable, Sendable {
    struct Header: Equatable, Sendable {
        let name: String
        let value: String
    }

    var status: Int
    var contentType = "application/json; charset=utf-8"
    var headers: [Header] = []
    var body: [UInt8]

    /// The name in the statistics: the OAuth error, or the status if there is none.
    let label: String

    /// The seconds of the Retry-After header, which the settings may override.
    ///
    /// `nil` sends the header only if the settings set it.
    var retryAfter: Int64?

    init(_ status: Int, contentType: String? = nil, headers: [Header] = [], body: [UInt8], retryAfter: Int64? = nil) {
        self.status = status
        self.contentType = contentType ?? self.contentType
        self.headers = headers
        self.body = body
        self.retryAfter = retryAfter
        label = OrderedJSON.parsed(body)?["error"]?.stringValue ?? "http_\(status)"
    }

    /// Makes an OAuth error (https://www.rfc-editor.org/rfc/rfc6749#section-5.2).
    static func error(_ status: Int, _ code: String, _ description: String? = nil, more: [OrderedJSON.Member] = [])
        -> FixedAnswer
    {
        var members = [OrderedJSON.Member(name: "error", value: .string(code))]
        if let description { members.append(.init(name: "error_description", value: .string(description))) }
        return FixedAnswer(status, body: Array(OrderedJSON.object(members + more).text.utf8))
    }

    static func html(_ status: Int, _ text: String, headers: [Header] = []) -> FixedAnswer {
        FixedAnswer(status, contentType: "text/html; charset=utf-8", headers: headers, body: Array(text.utf8))
    }
}
