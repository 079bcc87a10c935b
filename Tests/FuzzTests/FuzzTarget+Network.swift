import Glibc
import HTTPClient

@testable import HTTPServer

/// Bytes on a socket: answers to the HTTP client, requests to the HTTP server.
extension FuzzTarget {
    static let network: [FuzzTarget] = [
        FuzzTarget(name: "http_answer", run: readAnswer),
        FuzzTarget(name: "http_request", run: readRequest),
    ]

    private static let client = made { try HTTPClient() }
    private static let answers = made { try RawAnswers() }
    private static let bodyLimit = 4096
    private static let server = made {
        var configuration = HTTPServer.Configuration()
        configuration.limits.bodyBytes = bodyLimit
        configuration.trustedProxies = try TrustedProxies(["127.0.0.1", "10.0.0.0/8"])
        return try HTTPServer(configuration: configuration) { request in
            require(request.body.count <= bodyLimit, "a body is within its limit")
            require(request.path.hasPrefix("/"), "a path begins with a slash")
            for header in request.headers {
                let isClean = !header.value.utf8.contains { $0 == 0 || $0 == 0x0a || $0 == 0x0d }
                require(isClean, "a header's value has no line break and no NUL")
            }
            return .respond(.text("ok"))
        }
    }

    private static func readAnswer(_ input: [UInt8]) {
        answers.next(input)
        let endpoint = made { try Endpoint("http://127.0.0.1:\(answers.port)/token") }
        let request = HTTPRequest(method: .post, endpoint: endpoint, body: HTTPBody(Array("a=b".utf8)))
        let result = waitFor { () -> Result<HTTPResponse, HTTPError> in
            do throws(HTTPError) {
                return .success(try await client.send(request, deadline: .seconds(2)))
            } catch {
                return .failure(error)
            }
        }
        guard case .success(let response) = result else { return }
        require((100...999).contains(response.status), "a status has three digits")
        _ = response.header("retry-after")
        _ = response.retryAfter
    }

    private static func readRequest(_ input: [UInt8]) {
        guard let reply = RawRequest.exchange(input, port: server.port, isValid: false) else { return }
        require(reply.isEmpty || reply.starts(with: Array("HTTP/1.".utf8)), "an answer is HTTP")
        // The server must still work.
        let next = Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8)
        let check = RawRequest.exchange(next, port: server.port, isValid: true)
        require(check?.starts(with: Array("HTTP/1.1 200".utf8)) ?? true, "the next request is answered")
    }
}
