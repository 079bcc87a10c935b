@testable import WorkerTokens

/// What the library for Swift servers reads: responses on a unix socket, and notices.
extension FuzzTarget {
    static let workerTokens: [FuzzTarget] = [
        FuzzTarget(name: "notice_body") { _ = try? Notice(body: $0) },
        FuzzTarget(name: "unix_response", run: readUnixResponse),
    ]

    /// A response means the same however its bytes are divided.
    private static func readUnixResponse(_ input: [UInt8]) {
        let whole = unixResponse([input])
        let divided = unixResponse(input.map { [$0] })
        require(whole == divided, "the parts of a response do not matter")
    }

    private enum Reading: Equatable {
        case response(status: Int, retryAfter: String?, body: [UInt8])
        case failure(UnixSocketError)
    }

    private static func unixResponse(_ parts: [[UInt8]]) -> Reading {
        do throws(UnixSocketError) {
            var parser = HTTPResponseParser()
            for part in parts {
                if let response = try parser.add(part) { return reading(response) }
            }
            return reading(try parser.end())
        } catch {
            return .failure(error)
        }
    }

    private static func reading(_ response: WorkerTokens.Response) -> Reading {
        require((200...999).contains(response.status), "a status has three digits")
        // The head of a token's response and that of a refusal.
        _ = TokenResponse.result(of: response, sentAt: 0)
        return .response(status: response.status, retryAfter: response.retryAfter, body: response.body)
    }
}
