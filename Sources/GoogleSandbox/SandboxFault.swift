/// A simulated fault that replaces a good answer.
enum SandboxFault: Equatable, Sendable {
    /// A fixed answer, regardless of the request.
    case answer(FixedAnswer)

    /// The connection ends without a byte; the request is not processed.
    case reset

    /// No answer for a minute, then the connection ends; the request is not processed.
    case hang

    /// The request is processed, including a rotation, and the connection ends without a byte: the answer is lost.
    case lostAnswer

    /// The request is processed and answered, but the answer lacks the access token.
    case withoutAccessToken

    /// Finds a fault by its name in a control request.
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

    /// The fault's name, or the label of an answer without a name.
    var name: String {
        guard case .answer(let answer) = self else { return label }
        return FixedAnswer.presets.first { $0.answer == answer }?.name ?? label
    }

    /// All names that ``init(named:)`` accepts.
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

    /// The name in the statistics: the OAuth error, or the status if there is none.
    let label: String

    /// The seconds of the Retry-After header, which the settings may override; `nil` sends the header only if the
    /// settings set it.
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

extension SandboxFault {
    /// The name in the statistics.
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
