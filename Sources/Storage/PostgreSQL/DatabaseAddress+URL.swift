import Crypto

extension DatabaseAddress {
    private static let secretOptions: Set = ["password", "sslpassword"]
    /// The options before the `?`; a host that is a folder of sockets comes after it.
    private static let authorityOptions: Set = ["user", "host", "port", "dbname"]

    /// Returns the address as a URL, without its secrets.
    static func url(of options: [String: Secret]) -> String {
        let shown = options.filter { !secretOptions.contains($0.key) }.mapValues { $0.reveal() }
        let hosts = (shown["host"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let ports = (shown["port"] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        // Folders of sockets, and anything else that is not a host, follow as parameters.
        let fitAuthority =
            hosts.allSatisfy { isName($0) || isAddress($0) } && [0, 1, hosts.count].contains(ports.count)
        let authorities = hosts.enumerated().map { index, host in
            // A single port applies to all hosts.
            let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
            return (isAddress(host) ? "[\(host)]" : host) + (port.isEmpty ? "" : ":\(escaped(port))")
        }
        let user = shown["user"].map { $0.isEmpty ? "" : escaped($0) + "@" } ?? ""
        var parameters = shown.filter { !authorityOptions.contains($0.key) }
        if !fitAuthority {
            parameters["host"] = shown["host"]
            parameters["port"] = shown["port"]
        }
        let query = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\(escaped($0.value, except: "/"))" }
        return "postgres://" + user + (fitAuthority ? authorities.joined(separator: ",") : "") + "/"
            + escaped(shown["dbname"] ?? "", except: "/")
            + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    /// `true` if the address itself holds a secret, instead of naming a file that does.
    package var holdsPassword: Bool { Self.secretOptions.contains { options[$0]?.isEmpty == false } }

    /// `true` if the server is on this machine, so that the traffic cannot be read on a network.
    package var isLocal: Bool {
        let hosts = (options["hostaddr"] ?? options["host"])?.reveal().split(separator: ",") ?? []
        return hosts.allSatisfy { $0.hasPrefix("/") || $0 == "localhost" || $0.hasPrefix("127.") || $0 == "::1" }
    }

    /// `true` if the server has to prove its identity by a certificate.
    package var demandsCertificate: Bool { options["sslmode"]?.reveal() == "verify-full" }

    private static func isName(_ host: String) -> Bool { escaped(host) == host }

    /// `true` for an IPv6 address, which a URL holds in brackets.
    private static func isAddress(_ host: String) -> Bool {
        host.contains(":") && host.utf8.allSatisfy("0123456789abcdefABCDEF:.".utf8.contains)
    }

    /// Encodes everything but letters, digits and some signs as `%` and two hexadecimal digits; the slashes of a folder
    /// stay readable with `except`.
    private static func escaped(_ text: String, except more: String = "") -> String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~\(more)".utf8)
        return text.utf8.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return plain.contains(byte) ? String(UnicodeScalar(byte)) : "%" + (digits.count == 1 ? "0" : "") + digits
        }.joined()
    }
}

extension DatabaseAddress: Equatable {
    package static func == (left: DatabaseAddress, right: DatabaseAddress) -> Bool { left.options == right.options }
}
