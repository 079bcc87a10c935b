import Secrets

extension DatabaseAddress {
    private static let secretOptions: Set = ["password", "sslpassword"]
    /// What stands before the `?`; a host that is a folder of sockets stands behind it.
    private static let placedOptions: Set = ["user", "host", "port", "dbname"]

    /// The address as a URL, without what is secret in it.
    static func url(of options: [String: Secret]) -> String {
        let shown = options.filter { !secretOptions.contains($0.key) }.mapValues { $0.reveal() }
        let hosts = (shown["host"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let ports = (shown["port"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let isSocket = hosts.contains { $0.hasPrefix("/") }
        let places = hosts.enumerated().map { index, host in
            // One port counts for all hosts.
            let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
            return (host.contains(":") ? "[\(host)]" : escaped(host)) + (port.isEmpty ? "" : ":\(escaped(port))")
        }
        let user = shown["user"].map { escaped($0) + "@" } ?? ""
        var parameters = shown.filter { !placedOptions.contains($0.key) }
        if isSocket {
            parameters["host"] = shown["host"]
            parameters["port"] = shown["port"]
        }
        let query = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\(escaped($0.value))" }
        return "postgres://" + user + (isSocket ? "" : places.joined(separator: ",")) + "/"
            + escaped(shown["dbname"] ?? "")
            + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    /// Whether the address itself holds a secret, instead of leading to one in a file.
    package var holdsPassword: Bool { Self.secretOptions.contains { options[$0]?.isEmpty == false } }

    /// Whether the server is on this machine, where nobody listens on the way to it.
    package var isLocal: Bool {
        let hosts = (options["hostaddr"] ?? options["host"])?.reveal().split(separator: ",") ?? []
        return hosts.allSatisfy { $0.hasPrefix("/") || $0 == "localhost" || $0.hasPrefix("127.") || $0 == "::1" }
    }

    /// Whether the server has to prove by a certificate that it is the one that was meant.
    package var demandsCertificate: Bool { options["sslmode"]?.reveal() == "verify-full" }

    /// Everything but letters, digits and some signs as `%` and two hexadecimal digits; a folder's slashes stay readable.
    private static func escaped(_ text: String) -> String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/".utf8)
        return text.utf8.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return plain.contains(byte) ? String(UnicodeScalar(byte)) : "%" + (digits.count == 1 ? "0" : "") + digits
        }.joined()
    }
}

extension DatabaseAddress: Equatable {
    package static func == (left: DatabaseAddress, right: DatabaseAddress) -> Bool { left.options == right.options }
}
