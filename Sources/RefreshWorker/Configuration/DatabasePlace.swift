import PostgresStore
import Secrets
import Store

/// Where the grants are kept.
enum DatabasePlace: Equatable, Sendable, CustomStringConvertible {
    /// A SQLite file of this machine.
    case file(String)
    /// A PostgreSQL server, which several machines may share.
    case server(DatabaseAddress)

    /// What stands before the path of a file that holds the address of a server.
    static let urlFilePrefix = "url-file:"

    /// Understands what names a place by itself; the content of a file that holds an address is one as well.
    init(_ text: String) throws(SettingValue.Refusal) {
        guard text.contains("://") else {
            guard !Self.looksLikeServer(text) else {
                throw SettingValue.Refusal(
                    message: "looks like the address of a server, which begins with postgres:// (not shown)"
                )
            }
            self = .file(text)
            return
        }
        guard text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") else {
            throw SettingValue.Refusal(
                message: "is neither the path of a SQLite file nor an address that begins with postgres:// (not shown)"
            )
        }
        do throws(StoreError) {
            self = .server(try DatabaseAddress(url: Secret(text)))
        } catch {
            throw SettingValue.Refusal(message: "is not understood: \(error)")
        }
    }

    /// Whether a text is a mistyped address, or libpq's own form of one: as the path of a file it would be told to
    /// everybody, its password included.
    private static func looksLikeServer(_ text: String) -> Bool {
        text.contains(/^postgres(ql)?:/.ignoresCase()) || text.contains(/(password|host|dbname)\s*=/.ignoresCase())
    }

    /// The path of the file, where it is one.
    var file: String? {
        if case .file(let path) = self { path } else { nil }
    }

    var holdsPassword: Bool {
        if case .server(let address) = self { address.holdsPassword } else { false }
    }

    var description: String {
        switch self {
        case .file(let path): path
        case .server(let address): address.url
        }
    }
}
