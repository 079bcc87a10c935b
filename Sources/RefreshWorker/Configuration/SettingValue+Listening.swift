import Base
import HTTPServer

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
        guard let mode = fileMode(text), mode & ~0o770 == 0, mode & 0o600 == 0o600 else {
            throw InputError("\(DisplayedText(text)) is not a mode that excludes others, such as 0660")
        }
        return mode
    }

    private static func fileMode(_ text: String) -> UInt32? {
        guard text.utf8.count <= 4 else { return nil }
        return UInt32(text, radix: 8)
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
