import HTTPServer

/// Where a listener's socket comes from.
enum ListeningPlace: Equatable, Sendable {
    case own(ListenAddress)
    /// The socket of this name, which systemd hands in.
    case systemd(name: String)
}

extension SettingValue {
    /// A place for the app's routes; no unix socket, whose clients have no address to limit them by.
    static func publicPlace(_ text: String) throws(Refusal) -> ListeningPlace {
        let place = try place(text, among: "ADDRESS:PORT (the address in figures) and systemd:NAME")
        if case .own(.unix) = place {
            throw Refusal(
                message: """
                    \(DisplayedText(text)) is a unix socket, whose clients have no address to limit them by: say \
                    127.0.0.1:PORT, and let the proxy connect to that
                    """
            )
        }
        return place
    }

    private static func place(_ text: String, among places: String) throws(Refusal) -> ListeningPlace {
        let systemd = "systemd:"
        if text.hasPrefix(systemd) {
            let name = String(text.dropFirst(systemd.count))
            guard !name.isEmpty else { throw Refusal(message: "names no socket: systemd:NAME, by FileDescriptorName=") }
            return .systemd(name: name)
        }
        guard let address = ListenAddress(text) else {
            throw Refusal(message: "\(DisplayedText(text)) is none of \(places)")
        }
        return .own(address)
    }

    /// A place for tokens; ``Configuration/internalTLSProblem(at:)`` judges it once the whole configuration is known.
    static func internalPlace(_ text: String) throws(Refusal) -> ListeningPlace {
        try place(text, among: "unix:PATH, ADDRESS:PORT (the address in figures) and systemd:NAME")
    }

    /// A file mode in octal that keeps strangers out.
    static func socketMode(_ text: String) throws(Refusal) -> UInt32 {
        guard text.utf8.count <= 4, let mode = UInt32(text, radix: 8), mode & ~0o770 == 0, mode & 0o600 == 0o600 else {
            throw Refusal(message: "\(DisplayedText(text)) is no mode such as 0600 or 0660, which keeps strangers out")
        }
        return mode
    }

    /// Addresses and networks with commas between.
    static func networks(_ text: String) throws(Refusal) -> [String] {
        let networks = text.split(separator: ",").map { String($0.trimmingBlanks()) }.filter { !$0.isEmpty }
        do throws(HTTPServerError) {
            _ = try TrustedProxies(networks)
        } catch {
            throw Refusal(message: "\(DisplayedText(error.message))")
        }
        return networks
    }
}
