import Base
import Crypto
import HTTPServer
import Storage

/// The location of the database.
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

/// The origin of a listener's socket.
enum ListenerLocation: Equatable, Sendable {
    case own(ListenAddress)
    /// The socket of this name, which systemd passes.
    case systemd(name: String)

    /// `true` for a path, while the kind of a socket from systemd is not known.
    var isUnixSocket: Bool { if case .own(.unix) = self { true } else { false } }
}

extension SettingValue {
    /// Parses the location of the public listener.
    ///
    /// Unix sockets are refused: their clients do not have an address for rate limits.
    static func publicLocation(_ text: String) throws(InputError) -> ListenerLocation {
        let location = try location(text, among: "ADDRESS:PORT (the address in figures) and systemd:NAME")
        if case .own(.unix) = location {
            throw InputError(
                """
                \(DisplayedText(text)) is a unix socket, whose clients do not have an address for rate limits: use \
                127.0.0.1:PORT, and let the proxy connect to that
                """
            )
        }
        return location
    }

    private static func location(_ text: String, among forms: String) throws(InputError) -> ListenerLocation {
        let systemd = "systemd:"
        if text.hasPrefix(systemd) {
            let name = String(text.dropFirst(systemd.count))
            guard !name.isEmpty else {
                throw InputError("names no socket: systemd:NAME, by FileDescriptorName=")
            }
            return .systemd(name: name)
        }
        guard let address = ListenAddress(text) else {
            throw InputError("\(DisplayedText(text)) is not one of \(forms)")
        }
        return .own(address)
    }

    /// Parses the locations of the internal listener.
    ///
    /// ``Configuration/internalTLSProblem(at:)`` checks each against the whole configuration.
    static func internalLocations(_ text: String) throws(InputError) -> [ListenerLocation] {
        try list(text, of: "address") { piece throws(InputError) in
            try location(piece, among: "unix:PATH, ADDRESS:PORT (the address in figures) and systemd:NAME")
        }
    }

    /// Parses an octal file mode that excludes other users.
    static func socketMode(_ text: String) throws(InputError) -> UInt32 {
        guard text.utf8.count <= 4, let mode = UInt32(text, radix: 8), mode & ~0o770 == 0, mode & 0o600 == 0o600 else {
            throw InputError("\(DisplayedText(text)) is not a mode that excludes others, such as 0660")
        }
        return mode
    }

    /// Parses addresses and networks of proxies.
    static func networks(_ text: String) throws(InputError) -> [String] {
        try list(text, of: "address or network") { piece throws(InputError) in
            do throws(HTTPServerError) {
                _ = try TrustedProxies([piece])
            } catch {
                throw InputError("\(DisplayedText(error.message))")
            }
            return piece
        }
    }
}
