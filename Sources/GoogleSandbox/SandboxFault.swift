/// A simulated fault that replaces a good answer.
enum SandboxFault: Equatable, Sendable {
    /// A fixed answer, regardless of the request.
    case answer(FixedAnswer)

    /// The connection ends without a byte.
    ///
    /// The request is not processed.
    case reset

    /// No answer for a minute, then the connection ends.
    ///
    /// The request is not processed.
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
