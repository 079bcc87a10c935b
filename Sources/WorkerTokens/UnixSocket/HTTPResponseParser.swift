/// Reads one HTTP/1.1 response from the bytes of a connection that ends after it.
///
/// It knows what the worker sends, and refuses everything else, such as chunks.
struct HTTPResponseParser {
    static let maximumHead = 16 * 1024
    static let maximumBody = 1024 * 1024

    private static let headEnd = Array("\r\n\r\n".utf8)

    private struct Head {
        let status: Int
        let retryAfter: String?
        /// Nil if the body ends with the connection.
        let bodyLength: Int?
    }

    private var head: Head?
    /// The bytes of the head, and after it those of the body.
    private var bytes: [UInt8] = []

    /// Takes received bytes, and returns the response once it is complete.
    mutating func add(_ received: some Collection<UInt8>) throws(UnixSocketError) -> WorkerTokens.Response? {
        // The end of the head can begin in the bytes that came before.
        let unsearched = max(0, bytes.count - Self.headEnd.count + 1)
        bytes += received
        if head == nil { try readHead(searchingFrom: unsearched) }
        guard let head else {
            guard bytes.count <= Self.maximumHead else { throw .responseTooLarge }
            return nil
        }
        guard let length = head.bodyLength else {
            guard bytes.count <= Self.maximumBody else { throw .responseTooLarge }
            return nil
        }
        return bytes.count >= length ? response(head, body: bytes[..<length]) : nil
    }

    /// Returns the response at the end of the connection.
    func end() throws(UnixSocketError) -> WorkerTokens.Response {
        guard let head, head.bodyLength == nil else { throw .closedEarly }
        return response(head, body: bytes[...])
    }

    private func response(_ head: Head, body: ArraySlice<UInt8>) -> WorkerTokens.Response {
        WorkerTokens.Response(status: head.status, retryAfter: head.retryAfter, body: Array(body))
    }

    private mutating func readHead(searchingFrom start: Int) throws(UnixSocketError) {
        guard let end = Self.endOfHead(in: bytes, from: start) else { return }
        guard end <= Self.maximumHead else { throw .responseTooLarge }
        let text = String(decoding: bytes[..<(end - Self.headEnd.count)], as: UTF8.self)
        head = try Self.head(text)
        bytes.removeFirst(end)
    }

    private static func endOfHead(in bytes: [UInt8], from first: Int) -> Int? {
        for start in first..<bytes.count where bytes[start...].starts(with: headEnd) {
            return start + headEnd.count
        }
        return nil
    }

    private static func head(_ text: String) throws(UnixSocketError) -> Head {
        // A line break is one character to Swift, which a Character of "\n" does not equal.
        var lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)[...]
        let status = try status(lines.popFirst() ?? "")
        var retryAfter: String?
        var bodyLength: Int?
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { throw .notHTTP }
            let value = trimmed(line[line.index(after: colon)...])
            switch line[..<colon].lowercased() {
            case "content-length":
                let length = try length(value)
                guard bodyLength == nil || bodyLength == length else { throw .notHTTP }
                bodyLength = length
            case "transfer-encoding": throw .notHTTP
            case "retry-after": retryAfter = value
            default: break
            }
        }
        return Head(status: status, retryAfter: retryAfter, bodyLength: bodyLength)
    }

    /// Returns the status of a line such as `HTTP/1.1 200 OK`.
    private static func status(_ line: Substring) throws(UnixSocketError) -> Int {
        let parts = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0" else { throw .notHTTP }
        guard parts[1].utf8.count == 3, isNumber(parts[1]), let status = Int(parts[1]), status >= 200 else {
            throw .notHTTP
        }
        return status
    }

    private static func length(_ text: String) throws(UnixSocketError) -> Int {
        guard isNumber(text[...]), let length = Int(text) else { throw .notHTTP }
        guard length <= maximumBody else { throw .responseTooLarge }
        return length
    }

    private static func isNumber(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    private static func trimmed(_ text: Substring) -> String {
        let isSpace = { (character: Character) in character == " " || character == "\t" }
        let start = text.drop(while: isSpace)
        guard let last = start.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(start[...last])
    }
}
