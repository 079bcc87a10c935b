private import CPostgres
package import Crypto

/// The place of the database, the schema in it and the options to connect, parsed from a URL or a connection string of
/// libpq.
///
/// It prints without the password.
package struct DatabaseAddress: Sendable, CustomStringConvertible {
    /// The defaults of the URL: a dead network is detected within ten seconds, and of several servers the one that
    /// accepts writes is used.
    private static let defaults = [
        "application_name": "refresh-worker",
        "keepalives_idle": "5",
        "keepalives_interval": "2",
        "keepalives_count": "2",
        "tcp_user_timeout": "10000",
    ]

    let options: [String: Secret]
    package let schema: SchemaName
    /// The address as a URL to copy for PostgreSQL's own programs, which refuse the schema in it. It has no password.
    package let urlForPostgres: String

    /// The address as a URL to copy for this program, without the password.
    package var url: String {
        guard !schema.isStandard else { return urlForPostgres }
        return urlForPostgres + (urlForPostgres.contains("?") ? "&" : "?") + "schema=\(schema.text)"
    }

    package var description: String { name.description }

    var name: DatabaseName { DatabaseName(database: Self.description(of: options), schema: schema) }

    /// The addresses of the single hosts.
    var hosts: [DatabaseAddress] {
        let names = list("host")
        let numbers = list("hostaddr")
        let ports = list("port")
        let count = max(names.count, numbers.count)
        // libpq refuses lists whose lengths differ.
        guard count > 1, [0, count].contains(names.count), [0, count].contains(numbers.count),
            [0, 1, count].contains(ports.count)
        else { return [self] }
        return (0..<count).map { index in
            var options = options
            options["host"] = names.isEmpty ? nil : Secret(names[index])
            options["hostaddr"] = numbers.isEmpty ? nil : Secret(numbers[index])
            // A single port applies to all hosts.
            options["port"] = ports.isEmpty ? nil : Secret(ports.count == 1 ? ports[0] : ports[index])
            return DatabaseAddress(options: options, schema: schema, urlForPostgres: Self.url(of: options))
        }
    }

    /// The same address for a session that can be read-only.
    var withoutSessionRequirement: DatabaseAddress {
        var options = options
        options["target_session_attrs"] = nil
        return DatabaseAddress(options: options, schema: schema, urlForPostgres: urlForPostgres)
    }

    /// Returns the parts of an option that takes a list, if the lists agree in length: libpq refuses others.
    private func list(_ keyword: String) -> [String] {
        guard let text = options[keyword]?.reveal(), !text.isEmpty else { return [] }
        return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func description(of options: [String: Secret]) -> String {
        let shown = { (keyword: String) in options[keyword].map { $0.reveal() } }
        let host = shown("host") ?? shown("hostaddr") ?? ""
        return "the database \(shown("dbname") ?? shown("user") ?? "of the default name")"
            + (host.isEmpty ? "" : " on \(host)") + (shown("port").map { " port \($0)" } ?? "")
            + (shown("user").map { " as \($0)" } ?? "")
    }

    /// Passes keywords and values in the form that libpq expects.
    func withOptions<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        let names = options.keys.sorted()
        let keywords = names.map { Array($0.utf8CString) }
        let values = names.map { name in Array((options[name]?.reveal() ?? "").utf8CString) }
        return unsafe Self.withPointers(keywords) { keywordList in
            unsafe Self.withPointers(values) { valueList in unsafe body(keywordList, valueList) }
        }
    }

    private static func withPointers<Result>(
        _ strings: [[CChar]],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
        // One block for all strings, so that the pointers into it stay valid as long as the block.
        let block = strings.flatMap(\.self)
        return unsafe block.withUnsafeBufferPointer { characters in
            var start = characters.baseAddress
            var pointers: [UnsafePointer<CChar>?] = unsafe []
            for string in strings {
                unsafe pointers.append(start)
                unsafe start = start.map { unsafe $0 + string.count }
            }
            unsafe pointers.append(nil)
            return unsafe pointers.withUnsafeBufferPointer { list in
                guard let base = list.baseAddress else { preconditionFailure("the list ends with nil") }
                return unsafe body(base)
            }
        }
    }
}

extension DatabaseAddress {
    /// Parses `postgres://…`, `postgresql://…` or `host=… dbname=…`
    /// (https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING).
    package init(url: Secret) throws(StoreError) {
        let parameter = try SchemaParameter(of: url)
        var found: [String: Secret] = [:]
        var message: UnsafeMutablePointer<CChar>?
        guard let parsed = unsafe PQconninfoParse(parameter.urlForPostgres.reveal(), &message) else {
            let text = unsafe message.map { unsafe String(cString: $0) } ?? "out of memory"
            unsafe PQfreemem(message)
            throw Self.refusal(Self.untilQuote(text))
        }
        var option = unsafe parsed
        while let keyword = unsafe option.pointee.keyword {
            if let value = unsafe option.pointee.val {
                unsafe found[String(cString: keyword)] = Secret(String(cString: value))
            }
            unsafe option += 1
        }
        unsafe PQconninfoFree(parsed)
        try Self.check(found)
        schema = parameter.schema
        urlForPostgres = Self.url(of: found)
        for (keyword, value) in Self.defaults where found[keyword] == nil { found[keyword] = Secret(value) }
        let host = found["host"] ?? found["hostaddr"]
        if host?.reveal().contains(",") == true, found["target_session_attrs"] == nil {
            found["target_session_attrs"] = Secret("read-write")
        }
        // Text is exchanged as UTF-8, whatever the machine's locale is.
        found["client_encoding"] = Secret("UTF8")
        options = found
    }

    private static let secretOptions: Set = ["password", "sslpassword"]
    /// The options before the `?`.
    ///
    /// A host that is a folder of sockets comes after it.
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

    /// Encodes everything but letters, digits and some signs as `%` and two hexadecimal digits.
    ///
    /// The slashes of a folder stay readable with `except`.
    private static func escaped(_ text: String, except more: String = "") -> String {
        let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~\(more)".utf8)
        return text.utf8.map { byte in
            let digits = String(byte, radix: 16, uppercase: true)
            return plain.contains(byte) ? String(UnicodeScalar(byte)) : "%" + (digits.count == 1 ? "0" : "") + digits
        }.joined()
    }
}

extension DatabaseAddress: Equatable {
    package static func == (left: DatabaseAddress, right: DatabaseAddress) -> Bool {
        left.options == right.options && left.schema == right.schema
    }
}

/// Checks for passwords that libpq misreads without an error: a character in them that is not percent-encoded ends the
/// password early, and the rest becomes a port, a host or the database's name.
///
/// The error shows no part of such a URL.
extension DatabaseAddress {
    static func check(_ options: [String: Secret]) throws(StoreError) {
        for keyword in ["host", "hostaddr", "port", "dbname"] {
            guard options[keyword]?.reveal().contains("@") != true else {
                throw refusal("there is an @ in what reads as host, port or database (not shown)")
            }
        }
        // Several hosts have several ports. One that is left out has the default.
        let ports = options["port"]?.reveal().split(separator: ",") ?? []
        for port in ports where !(1...65_535).contains(Int(port) ?? 0) {
            throw refusal("a port is not a number from 1 to 65535 (not shown)")
        }
    }

    static func refusal(_ cause: String) -> StoreError {
        StoreError(
            .cannotOpen,
            "The database's URL cannot be read: \(cause). It looks like postgres://user@host:5432/database, or "
                + "postgres:///database?host=/run/postgresql for a socket; a password with @, :, / or % in it is "
                + "percent-encoded."
        )
    }

    /// Returns a message of libpq up to its first quotation mark.
    ///
    /// libpq quotes the part of the URL that it cannot read, which can be a password and can itself contain quotation
    /// marks.
    static func untilQuote(_ message: String) -> String {
        guard let quote = message.firstIndex(of: "\"") else { return message.oneLine }
        return message[..<quote] + "\"…\""
    }
}
