import Foundation
import TestSupport
import Testing

@testable import HTTPClient

@Suite(
    "TLS and HTTP/2",
    .timeLimit(.minutes(10)),
    .serialized,
    .enabled(if: Tool.openssl.isInstalled, "openssl is not installed, so no certificates can be made")
)
struct TLSTests {
    @Test(
        "Concurrent requests share one HTTP/2 connection, and hundreds share a few",
        .enabled(if: Tool.nghttpd.isInstalled, "nghttpd (Debian nghttp2-server) is not installed"),
        arguments: [(50, 1), (300, 6)]
    )
    func multiplexing(requests: Int, mostConnections: Int) async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "DNS:localhost,IP:127.0.0.1")
        let server = try TLSServer.http2(authority, certificate: "good")
        defer { server.stop() }
        let client = try makeClient {
            $0 = HTTPClient.Configuration(maximumInFlight: requests)
            $0.caFile = authority.certificateFile
        }
        // Twice as many as may be in flight.
        let total = 2 * requests
        let expected = try String(contentsOfFile: authority.certificateFile, encoding: .utf8)
        let url = "https://127.0.0.1:\(server.port)/ca.pem"
        try await withThrowingTaskGroup { group in
            for number in 0..<total {
                group.addTask {
                    let request =
                        number.isMultiple(of: 2) ? HTTPRequest(method: .get, url: url) : post(url, "token=\(number)")
                    let response = try await client.send(request)
                    #expect(response.isHTTP2)
                    #expect(response.text == expected)
                }
            }
            try await group.waitForAll()
        }
        let counters = client.counters
        #expect(counters.completed == total)
        #expect((1...mostConnections).contains(counters.newConnections))
        #expect(counters.reusedConnections == total - counters.newConnections)
    }

    @Test(
        "A body over the limit ends its own HTTP/2 stream and no other",
        .enabled(if: Tool.nghttpd.isInstalled, "nghttpd (Debian nghttp2-server) is not installed")
    )
    func bodyCapOverHTTP2() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "IP:127.0.0.1")
        try Data(repeating: 0x78, count: 1_000_000).write(to: URL(filePath: authority.path("large")))
        let server = try TLSServer.http2(authority, certificate: "good")
        defer { server.stop() }
        let client = try makeClient { $0.caFile = authority.certificateFile }
        let url = "https://127.0.0.1:\(server.port)/"
        #expect(try await client.send(post(url + "ca.pem")).status == 200)
        let failure = await outcome { () throws(HTTPError) in try await client.send(post(url + "large")) }.failure
        #expect(failure?.kind == .bodyTooLarge)
        #expect(try await client.send(post(url + "ca.pem")).status == 200)
        #expect(client.counters.newConnections == 1)
    }

    @Test("HTTP/1 over TLS is used if the server has no HTTP/2")
    func http1() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "DNS:localhost")
        let server = try TLSServer.http1(authority, certificate: "good")
        defer { server.stop() }
        let client = try makeClient { $0.caFile = authority.certificateFile }
        let response = try await client.send(HTTPRequest(method: .get, url: "https://localhost:\(server.port)/"))
        #expect(response.status == 200)
        #expect(!response.isHTTP2)
    }

    @Test("A new connection does not read the certificate authorities again")
    func cachedAuthorities() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "DNS:localhost")
        let server = try TLSServer.http1(authority, certificate: "good")
        defer { server.stop() }
        let client = try makeClient { $0.caFile = authority.certificateFile }
        let request = HTTPRequest(method: .get, url: "https://localhost:\(server.port)/")
        _ = try await client.send(request)
        try FileManager.default.removeItem(atPath: authority.certificateFile)
        _ = try await client.send(request)
        #expect(client.counters.newConnections == 2)
    }

    @Test("A new connection resumes the TLS session of the previous one", arguments: ["-tls1_2", "-tls1_3"])
    func resumption(version: String) async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "DNS:localhost")
        let server = try TLSServer.http1(authority, certificate: "good", options: [version])
        defer { server.stop() }
        let client = try makeClient { $0.caFile = authority.certificateFile }
        let request = HTTPRequest(method: .get, url: "https://localhost:\(server.port)/")
        // The page of `openssl s_server -www` describes the connection over which it is sent.
        // The first session is that of the connection that offered HTTP/2, or its own.
        #expect(try await client.send(request).text.contains("TLSv1"))
        for _ in 0..<3 {
            #expect(try await client.send(request).text.contains("Reused, TLSv1"))
        }
        #expect(client.counters.newConnections == 4)
    }

    @Test("A certificate of another authority, or for another host, is refused before anything is sent")
    func certificates() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        let otherAuthority = try TestAuthority()
        defer { otherAuthority.remove() }
        try authority.issue("other", for: "DNS:other.example")
        try otherAuthority.issue("good", for: "DNS:localhost")
        let client = try makeClient { $0.caFile = authority.certificateFile }
        for (owner, name) in [(authority, "other"), (otherAuthority, "good")] {
            let server = try TLSServer.http1(owner, certificate: name)
            defer { server.stop() }
            let request = post("https://localhost:\(server.port)/")
            let failure = await outcome { () throws(HTTPError) in try await client.send(request) }.failure
            #expect(failure?.kind == .certificate)
            #expect(failure?.outcomeUnknown == false)
            #expect(failure?.code == 60)
        }
    }

    @Test("A missing file of authorities is a TLS failure")
    func missingAuthorities() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "DNS:localhost")
        let server = try TLSServer.http1(authority, certificate: "good")
        defer { server.stop() }
        let client = try makeClient { $0.caFile = authority.path("missing.pem") }
        let request = post("https://localhost:\(server.port)/")
        let failure = await outcome { () throws(HTTPError) in try await client.send(request) }.failure
        #expect(failure?.kind == .tls)
        #expect(failure?.outcomeUnknown == false)
    }

    @Test("A server with only TLS 1.1 is refused, one with only TLS 1.2 is accepted")
    func oldVersions() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("good", for: "DNS:localhost")
        let client = try makeClient { $0.caFile = authority.certificateFile }
        // OpenSSL 3 offers TLS 1.1 only at security level 0.
        for (options, isGood) in [(["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], false), (["-tls1_2"], true)] {
            let server = try TLSServer.http1(authority, certificate: "good", options: options)
            defer { server.stop() }
            let request = HTTPRequest(method: .get, url: "https://localhost:\(server.port)/")
            let result = await outcome { () throws(HTTPError) in try await client.send(request) }
            #expect(result.failure?.kind == (isGood ? nil : .tls), "\(options)")
        }
    }
}
