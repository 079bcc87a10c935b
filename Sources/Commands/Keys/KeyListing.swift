import Base
import Crypto
import Telemetry

/// The output of `keys list`.
struct KeyListing: Equatable, Sendable {
    let keys: KeyRingSummary
    /// The number of stored tokens that each key seals; `nil` without a database.
    let keysInUse: [KeyID: Int]?

    /// One line for each key, in the order of the ring.
    var lines: [String] {
        keys.entries.map { entry in
            let until = entry.removableAt.map { ", stays until \($0.iso8601Seconds)" } ?? ""
            guard let keysInUse else { return "\(entry.id)  \(entry.role.rawValue)\(until)" }
            let tokens = Self.tokens(keysInUse[entry.id] ?? 0)
            return "\(entry.id)  \(entry.role.rawValue.padding(to: 8)) \(tokens)\(until)"
        }
    }

    /// Returns a line for each key, for people or for programs.
    func lines(asJSON isJSON: Bool) -> [String] {
        guard isJSON else { return lines }
        return keys.entries.map { entry in
            var line = JSONLine()
            line.field("key", entry.id.description)
            line.field("role", entry.role.rawValue)
            line.fieldOrNull("tokens", keysInUse.map { $0[entry.id] ?? 0 })
            line.fieldOrNull("removable_at", entry.removableAt?.iso8601)
            return line.text
        }
    }

    /// The problems of the ring.
    var warnings: [String] {
        Self.warnings(keys: keys, keysInUse: keysInUse ?? [:])
    }

    static func warnings(keys: KeyRingSummary, keysInUse: [KeyID: Int]) -> [String] {
        keys.missingKeys(of: keysInUse).map { id in
            """
            warning: \(tokens(keysInUse[id] ?? 0)) sealed with key \(id), which the ring lacks, cannot be opened: \
            restore the key's line from a backup of the key ring, or have those users sign in again
            """
        }
    }

    static func tokens(_ count: Int) -> String { count == 1 ? "1 token" : "\(count) tokens" }
}

extension String {
    /// Returns the text padded with blanks to a width.
    func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
