#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Makes the requests for tokens, as docs/services.md describes them.
struct RequestBuilder: Sendable {
    static let maximumMinimumLife = 3600

    private let baseURL: String
    private let authorization: String

    init(baseURL: String, credential: String) throws(TokenError) {
        guard Self.keepsSecrets(baseURL) else {
            throw .invalidConfiguration(
                message: "The worker's address must begin with https://, except on this machine."
            )
        }
        guard !credential.isEmpty, credential.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw .invalidConfiguration(message: "The credential must be printable ASCII without spaces.")
        }
        self.baseURL = baseURL.last == "/" ? String(baseURL.dropLast()) : baseURL
        authorization = "Bearer \(credential)"
    }

    /// `true` if requests to this address cannot be read in transit.
    private static func keepsSecrets(_ address: String) -> Bool {
        guard let url = URL(string: address), let scheme = url.scheme?.lowercased(), let host = url.host?.lowercased()
        else { return false }
        guard !host.isEmpty, url.query == nil, url.fragment == nil, url.user == nil else { return false }
        return scheme == "https" || scheme == "http" && ["localhost", "127.0.0.1", "::1", "[::1]"].contains(host)
    }

    func request(for demand: TokenDemand) throws(TokenError) -> WorkerTokens.Request {
        let subject = demand.subject
        // A proxy would resolve a path with one of the last two, and ask for something else.
        guard !["", ".", ".."].contains(subject.user) else {
            throw .invalidRequest(message: "the user's id is empty or a dot segment")
        }
        guard (0...Self.maximumMinimumLife).contains(demand.minimumLife) else {
            throw .invalidRequest(message: "minimumLife is not within 0 and \(Self.maximumMinimumLife)")
        }
        var query: [String] = []
        if let connection = subject.connection { query.append("connection=\(Self.escaped(connection))") }
        query += subject.scopes.map { "scope=\(Self.escaped($0))" }
        let path = "/v1/grants/\(Self.escaped(subject.user))/token"
        guard let refused = demand.refused else {
            query.append("min_ttl=\(demand.minimumLife)")
            return request(method: "GET", path: path, query: query, body: [])
        }
        return request(method: "POST", path: path + "/refresh", query: query, body: try Self.body(refusing: refused))
    }

    private func request(method: String, path: String, query: [String], body: [UInt8]) -> WorkerTokens.Request {
        var headers = [
            WorkerTokens.Request.Header(name: "Authorization", value: authorization),
            WorkerTokens.Request.Header(name: "Accept", value: "application/json"),
        ]
        if !body.isEmpty { headers.append(.init(name: "Content-Type", value: "application/json")) }
        let target = query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
        return WorkerTokens.Request(
            method: method,
            url: baseURL + target,
            target: target,
            headers: headers,
            body: body
        )
    }

    private static func body(refusing token: String) throws(TokenError) -> [UInt8] {
        do {
            return Array(try JSONEncoder().encode(["access_token": token]))
        } catch {
            throw .invalidRequest(message: "the refused token is not a text")
        }
    }

    /// Escapes everything that is not unreserved (RFC 3986, section 2.3).
    private static func escaped(_ text: String) -> String {
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                escaped.append(byte)
            default:
                escaped += [UInt8(ascii: "%"), hexadecimal[Int(byte >> 4)], hexadecimal[Int(byte & 15)]]
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    private static let hexadecimal = Array("0123456789ABCDEF".utf8)
}
