import Base
import Crypto
import Storage

enum DatabaseLocation: Equatable, Sendable, CustomStringConvertible {
    /// A SQLite file on this machine.
    case file(String)
    /// A PostgreSQL server, which several machines can share.
    case server(DatabaseAddress)

    /// The prefix before the path of a file that holds the address of a server.
    static let urlFilePrefix = "url-file:"

    /// Parses a path or an address, also from the content of a file that holds one.
    init(_ text: String) throws(InputError) {
        guard text.contains("://") else {
            guard !Self.looksLikeServer(text) else {
                throw InputError(
                    "looks like the address of a server, which begins with postgres:// (not shown)"
                )
            }
            self = .file(text)
            return
        }
        guard text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") else {
            throw InputError(
                "is neither the path of a SQLite file nor an address that begins with postgres:// (not shown)"
            )
        }
        do throws(StoreError) {
            self = .server(try DatabaseAddress(url: Secret(text)))
        } catch {
            throw InputError("is not understood: \(error)")
        }
    }

    /// `true` if the text is a mistyped address, or libpq's own form of one.
    ///
    /// As the path of a file it would appear in messages, including its password.
    private static func looksLikeServer(_ text: String) -> Bool {
        text.contains(/^postgres(ql)?:/.ignoresCase()) || text.contains(/(password|host|dbname)\s*=/.ignoresCase())
    }

    /// The path of the SQLite file, or `nil` for a server.
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
