import Base
import Crypto

/// The result of `keys retire`.
enum KeyRetirement: Equatable, Sendable {
    case retired(removableAt: Timestamp)
    case removed
    /// The lost key counts as not needed any more, although this many stored tokens need it.
    case givenUp(tokens: Int)

    func text(of id: KeyID, in path: String) -> String {
        switch self {
        case .retired(let end):
            """
            retired key \(id) in \(path): it is kept for one more day, and neither seals nor binds
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
            line.field("removable_at", end.iso8601)
        case .removed:
            line.field("result", "removed")
            line.field("file", path)
        case .givenUp(let tokens):
            line.field("result", "given_up")
            line.field("unreadable_tokens", tokens)
        }
    }
}
