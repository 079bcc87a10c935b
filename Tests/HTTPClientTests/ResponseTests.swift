import Glibc
import TestSupport
import Testing

@testable import HTTPClient

@Suite("Complete and broken responses", .timeLimit(.minutes(10)))
struct ResponseTests {
    @Test("A plain response comes with its status, headers and body")
    func plainResponse() async throws {
        let server = try ScriptedServer { _ in answer("hello", headers: "Retry-After:  17 \r\nX-Empty:\r\n") }
        defer { server.stop() }
        let client = try makeClient()
        let response = try await client.send(HTTPRequest(method: .get, url: server.url + "?q=1"))
        #expect(response.status == 200)
        #expect(response.text == "hello")
        #expect(response.header("retry-after") == "17")
        #expect(response.header("X-EMPTY") == "")
        #expect(response.header("retry") == nil)
        #expect(!response.isHTTP2)
        #expect(response.newConnection)
        #expect(server.received.first?.head.hasPrefix("GET /token?q=1 HTTP/1.1\r\n") == true)
    }

    @Test("A POST carries the body, the requested headers and no others", arguments: [0, 1, 5000, 200_000])
    func postedBody(length: Int) async throws {
        let server = try ScriptedServer { _ in answer("{}") }
        defer { server.stop() }
        let client = try makeClient { $0.userAgent = "refresh-worker/1.2" }
        let body = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 7) }
        let headers = [("Content-Type", FormBody.contentType), ("X-Empty", "")]
        _ = try await client.send(
            HTTPRequest(method: .post, url: server.url, headers: headers, body: HTTPBody(body))
        )
        let received = try #require(server.received.first)
        #expect(received.body == body)
        let lines = received.head.split(separator: "\r\n").map { $0.lowercased() }
        #expect(
            Set(lines) == [
                "post /token http/1.1", "host: 127.0.0.1:\(server.port)", "user-agent: refresh-worker/1.2",
                "accept: */*", "connection: close", "content-type: application/x-www-form-urlencoded", "x-empty:",
                "content-length: \(length)",
            ]
        )
    }

    @Test("A POST without a body declares an empty body")
    func emptyPost() async throws {
        let server = try ScriptedServer { _ in answer("") }
        defer { server.stop() }
        let response = try await makeClient().send(HTTPRequest(method: .post, url: server.url))
        #expect(response.body.count == 0)
        #expect(server.received.first?.head.lowercased().contains("content-length: 0\r\n") == true)
    }

    @Test("A chunked response is joined; the headers of an interim response are dropped")
    func chunkedResponse() async throws {
        let server = try ScriptedServer { _ in
            [
                .send("HTTP/1.1 103 Early Hints\r\nRetry-After: 1\r\n\r\n"),
                .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                .send("7\r\n, world\r\n0\r\n\r\n"),
            ]
        }
        defer { server.stop() }
        let response = try await makeClient().send(post(server.url))
        #expect(response.text == "hello, world")
        #expect(response.header("retry-after") == nil)
    }

    @Test("A response after many early hints is complete, with its own headers alone")
    func manyEarlyHints() async throws {
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </\(String(repeating: "x", count: 960))>\r\n\r\n"
        let server = try ScriptedServer { _ in
            [.send(String(repeating: hint, count: 150))] + answer("token", headers: "Retry-After: 17\r\n")
        }
        defer { server.stop() }
        let response = try await makeClient().send(post(server.url))
        #expect(response.status == 200)
        #expect(response.text == "token")
        #expect(response.header("retry-after") == "17")
        #expect(response.header("link") == nil)
    }

    @Test("Any status is a response, and a redirect is not followed", arguments: [204, 302, 307, 400, 401, 429, 503])
    func anyStatus(status: Int) async throws {
        let server = try ScriptedServer { received in
            answer("", status: "\(status) Status", headers: "Location: /elsewhere\r\n")
        }
        defer { server.stop() }
        let response = try await makeClient().send(post(server.url))
        #expect(response.status == status)
        #expect(server.received.count == 1)
    }

    @Test(
        "A header that continues on a second line is refused, because libcurl reads freed memory there",
        arguments: [" ", "\t"]
    )
    func foldedHeader(blank: String) async throws {
        let server = try ScriptedServer { _ in answer("body", headers: "X-Long: one\r\n\(blank)two\r\n") }
        defer { server.stop() }
        let client = try makeClient()
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(failure?.kind == .receiveFailed)
        #expect(failure?.outcomeUnknown == true)
        #expect(failure?.message == "a header of the response continues on a second line")
    }

    @Test("A compressed body is returned as received")
    func noDecompression() async throws {
        let server = try ScriptedServer { _ in answer("not gzip", headers: "Content-Encoding: gzip\r\n") }
        defer { server.stop() }
        #expect(try await makeClient().send(post(server.url)).text == "not gzip")
    }

    @Test("A body of exactly the limit is kept, and one byte more is refused", arguments: [true, false])
    func bodyCap(isChunked: Bool) async throws {
        let server = try ScriptedServer { received in
            let body = String(repeating: "x", count: received.number == 1 ? 1000 : 1001)
            guard isChunked else { return answer(body) }
            let length = String(body.utf8.count, radix: 16)
            return [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(length)\r\n\(body)\r\n0\r\n\r\n")]
        }
        defer { server.stop() }
        let client = try makeClient { $0.maximumBodyBytes = 1000 }
        #expect(try await client.send(post(server.url)).body.count == 1000)
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(failure?.kind == .bodyTooLarge)
        #expect(failure?.outcomeUnknown == true)
        #expect(failure?.partialResponse?.text == String(repeating: "x", count: 1000))
    }

    /// The ways to break a response after the last significant byte of its body.
    static let brokenEnds: [(String, [ScriptedServer.Step])] = [
        ("promises more", [.send("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nwhole"), .close]),
        (
            "never ends its chunks",
            [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n"), .close]
        ),
        (
            "has a wrong chunk size",
            [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\nzz\r\n"), .close]
        ),
    ]

    @Test("The received part of a broken response comes with its failure", arguments: brokenEnds)
    func partialResponse(name: String, steps: [ScriptedServer.Step]) async throws {
        let server = try ScriptedServer { _ in steps }
        defer { server.stop() }
        let client = try makeClient()
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(failure?.kind == .receiveFailed, "a server that \(name)")
        #expect(failure?.partialResponse?.status == 200)
        #expect(failure?.partialResponse?.text == "whole")
    }

    @Test("The part received before the deadline comes with the failure")
    func partialResponseInTime() async throws {
        let time = ManualTime()
        let server = try ScriptedServer { _ in
            [
                .send("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nwhole"),
                .call { time.advance(by: .seconds(120)) },
                .hang,
            ]
        }
        defer { server.stop() }
        let client = try makeClient(time: time)
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(failure?.kind == .timeout)
        #expect(failure?.partialResponse?.text == "whole")
    }

    /// The ways in which a server can break its response, and the resulting failures.
    static let breakages: [(String, [ScriptedServer.Step], HTTPError.Kind)] = [
        ("closes without a response", [.close], .receiveFailed),
        ("is cut off in its headers", [.send("HTTP/1.1 200 OK\r\nContent-Le"), .close], .receiveFailed),
        (
            "is cut off in its body", [.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), .close],
            .receiveFailed
        ),
        ("does not speak HTTP", [.send("SSH-2.0-OpenSSH_9.2\r\n\r\n"), .close], .receiveFailed),
        ("has a status of five digits", [.send("HTTP/260000 \u{7f}P/\r\n\r\n8"), .close], .receiveFailed),
        (
            "says nothing after an interim response", [.send("HTTP/1.1 103 Early Hints\r\n\r\n"), .close],
            .receiveFailed
        ),
        (
            "has a wrong chunk size",
            [.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), .close], .receiveFailed
        ),
        (
            "floods with headers",
            [
                .send(
                    "HTTP/1.1 200 OK\r\n"
                        + String(repeating: "X-Flood: \(String(repeating: "x", count: 200))\r\n", count: 500) + "\r\n"
                )
            ], .headersTooLarge
        ),
        (
            "floods with interim responses",
            [.send(String(repeating: "HTTP/1.1 103 Early Hints\r\n\r\n", count: 8000)), .hang], .headersTooLarge
        ),
        (
            "floods with trailers",
            [
                .send(
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwhole\r\n0\r\n"
                        + String(repeating: "X-Flood: 1\r\n", count: 20_000)
                ),
                .hang,
            ], .headersTooLarge
        ),
    ]

    @Test("A broken response leaves the outcome unknown, and the POST is not repeated", arguments: breakages)
    func brokenResponse(name: String, steps: [ScriptedServer.Step], kind: HTTPError.Kind) async throws {
        let server = try ScriptedServer { _ in steps }
        defer { server.stop() }
        let client = try makeClient()
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(server.url)) }.failure
        #expect(failure?.kind == kind, "a server that \(name)")
        #expect(failure?.outcomeUnknown == true)
        #expect(server.received.count == 1)
        #expect(client.counters.failed == 1)
    }

    @Test("A refused connection shows that the request was not sent")
    func refusedConnection() async throws {
        let client = try makeClient()
        let port = try RefusingPort()
        let url = "http://127.0.0.1:\(port.number)/"
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(url)) }.failure
        withExtendedLifetime(port) {}
        #expect(failure?.kind == .connect)
        #expect(failure?.outcomeUnknown == false)
        #expect(failure?.code == 7)
    }

    @Test("A host without an address has its own kind of failure")
    func unknownHost() async throws {
        let client = try makeClient { $0.connectDeadline = .seconds(5) }
        let url = "https://no-such-host.invalid/"
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(url)) }.failure
        // Without a name server, the lookup may take longer than the connect deadline.
        #expect(failure?.kind == .resolve || failure?.kind == .timeout)
        #expect(failure?.outcomeUnknown == false)
    }

    @Test("A proxy from the environment is not used for loopback")
    func noProxyForLoopback() async throws {
        await #expect(processExitsWith: .success) {
            setenv("http_proxy", "http://127.0.0.1:9", 1)
            setenv("all_proxy", "http://127.0.0.1:9", 1)
            let server = try ScriptedServer { _ in answer("direct") }
            defer { server.stop() }
            let text = try await makeClient().send(post(server.url)).text
            precondition(text == "direct")
        }
    }
}
