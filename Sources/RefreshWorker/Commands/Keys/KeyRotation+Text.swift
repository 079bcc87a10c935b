import Base
import Crypto

extension KeyRotation.ProgressEvent {
    /// `true` if the event matters only while it lasts.
    var isPassing: Bool {
        switch self {
        case .added, .resumed, .promoted: false
        case .waiting, .resealed: true
        }
    }

    var sentence: String {
        switch self {
        case .added(let key): "added key \(key) to the ring; it does not seal until every live worker holds it"
        case .resumed: "continuing a rotation that was begun earlier"
        case .waiting(.awaitHolders(let key, let lacking)):
            "waiting until these workers hold key \(key): \(lacking.joined(separator: ", "))"
        case .waiting(.awaitSealers(let key, let lacking)):
            "waiting until these workers seal with key \(key): \(lacking.joined(separator: ", "))"
        case .waiting: "waiting"
        case .promoted(let key): "key \(key) is the sealing key now: it seals every token that is stored from now on"
        case .resealed(let done, let total): "sealed \(done) of \(total) tokens again"
        }
    }
}

extension KeyRotation.Outcome {
    /// Adds the outcome for programs.
    func write(to line: inout JSONLine) {
        line.field("sealing_key", sealingKeyID.description)
        line.field("resealed", resealed)
        line.field("remaining_tokens", remainingTokens)
        line.strings("retirable_keys", retirable.map(\.description))
        line.strings("removed_keys", removable.map(\.description))
        line.strings("unreadable_users", unreadable)
    }

    var lines: [String] {
        let retire = retirable.map { "  refresh-worker keys retire \($0)" }
        let advice = """
            Back the key ring up now. When no backup of the database from before today is needed any more, run:
            """
        return ["finished: \(resealed.counted("token")) sealed again with key \(sealingKeyID)"]
            + removable.map { "removed the retired key \($0) from the ring" }
            + (retire.isEmpty ? [] : [advice] + retire)
    }
}

extension CommandError {
    /// The number of users that are named. The others are only counted.
    private static let maximumNames = 20

    init(remaining outcome: KeyRotation.Outcome) {
        let named = outcome.unreadable.prefix(Self.maximumNames).map { "\(DisplayedText($0))" }
        let rest = outcome.unreadable.count - named.count
        self.init(
            .leftForLater,
            """
            \(outcome.remainingTokens.counted("token")) could not be sealed again, because the key that sealed them does \
            not open them; these users must sign in again, or be disconnected (refresh-worker grants disconnect USER):
            \(named.joined(separator: "\n"))\(rest > 0 ? "\nand \(rest) more" : "")
            """
        )
    }
}
