import Base
import Crypto

/// The result of `keys retire`.
enum KeyRetirement: Equatable, Sendable {
    /// The end is `nil` for a binding key, which stays in the file for good.
    case retired(removableAt: Timestamp?)
    case removed
    /// The lost key counts as not needed any more, although this many stored tokens need it.
    case givenUp(tokens: Int)

    func text(of id: KeyID, in path: String) -> String {
        switch self {
        case .retired(.none):
            """
            retired the binding key \(id) in \(path): no refresh token is bound to it any more
            Its line stays in the file and does no harm.
            """
        case .retired(let end?):
            """
            retired key \(id) in \(path): it is kept for one more day, and seals nothing
            Results that need it might still wait to be stored. After \(end.iso8601Seconds) run this command \
            again, or keys rotate, to remove it from the file.
            """
        case .removed:
            """
            removed key \(id) from \(path)
            Backups of the database from before the last rotation still need it: keep a backup of the key ring \
            with this key as long as those.
            """
        case .givenUp(let tokens):
            """
            removed the lost key \(id) from the database: \(tokens.counted("token")) of it stay useless, \
            and their users must sign in again
            """
        }
    }

    func write(_ id: KeyID, in path: String, to line: inout JSONLine) {
        line.field("key", id.description)
        switch self {
        case .retired(let end):
            line.field("result", "retired")
            line.field("file", path)
            line.fieldOrNull("removable_at", end?.iso8601)
        case .removed:
            line.field("result", "removed")
            line.field("file", path)
        case .givenUp(let tokens):
            line.field("result", "given_up")
            line.field("unreadable_tokens", tokens)
        }
    }
}
