/// What the sandbox does in place of a good answer.
enum Fault: Equatable, Sendable {
    /// These bytes, whatever was asked.
    case answer(FixedAnswer)

    /// The connection ends without a byte, and nothing was done.
    case reset

    /// No answer for a minute, then the connection ends; nothing was done.
    case hang

    /// All is done, a rotated refresh token included, and the connection ends without a byte: the answer was lost on the way.
    case lostAnswer

    /// All is done and answered, except that the access token is left out of the answer.
    case withoutAccessToken

    /// The name under which a control request asks for a fault.
    init?(named name: String) {
        switch name {
        case "reset": self = .reset
        case "hang": self = .hang
        case "lost_answer": self = .lostAnswer
        case "without_access_token": self = .withoutAccessToken
        default:
            guard let preset = FixedAnswer.presets.first(where: { $0.name == name }) else { return nil }
            self = .answer(preset.answer)
        }
    }

    /// Its name, or its label if it was spelled out and has none.
    var name: String {
        guard case .answer(let answer) = self else { return label }
        return FixedAnswer.presets.first { $0.answer == answer }?.name ?? label
    }

    /// All the names that ``init(named:)`` knows.
    static var names: [String] {
        FixedAnswer.presets.map(\.name) + ["reset", "hang", "lost_answer", "without_access_token"]
    }
}

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

    /// The name under which the statistics count it: its OAuth error, or else its status.
    let label: String

    /// Seconds for a Retry-After header that the settings may change; nil sends none unless they ask for one.
    var retryAfter: Int64?

    init(_ status: Int, contentType: String? = nil, headers: [Header] = [], body: [UInt8], retryAfter: Int64? = nil) {
        self.status = status
        self.contentType = contentType ?? self.contentType
        self.headers = headers
        self.body = body
        self.retryAfter = retryAfter
        label = OrderedJSON.parsed(body)?["error"]?.stringValue ?? "http_\(status)"
    }

    /// An error of the OAuth kind (https://www.rfc-editor.org/rfc/rfc6749#section-5.2).
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

extension Fault {
    /// The name under which the statistics count it.
    var label: String {
        switch self {
        case .answer(let answer): answer.label
        case .reset: "reset"
        case .hang: "hang"
        case .lostAnswer: "lost_answer"
        case .withoutAccessToken: "without_access_token"
        }
    }
}
