import Foundation
import Glibc
import GoogleOAuth
import HTTPClient
import TestSupport
import Testing

@testable import RefreshWorker

@Suite(
    "Doctor on endpoints",
    .timeLimit(.minutes(10)),
    .serialized,
    .enabled(if: OpenSSL.isInstalled, "openssl is not installed, so no certificates can be made")
)
struct DoctorEndpointTests {
    private func diagnose(_ fixture: OperatorFixture, url: String, caFile: String) async throws -> [Check] {
        let names: [Setting.Name] = [.tokenEndpoint, .userinfoEndpoint, .tokeninfoEndpoint, .revocationEndpoint]
        let flags = names.map { ($0, url) } + [(.caFile, fixture.path(caFile))]
        return await Doctor(context: try fixture.context(flags)).endpointChecks()
    }

    @Test("any answer is ok, and its date shows whether the clocks agree")
    func answers() async throws {
        try await OperatorFixture.with { fixture in
            let server = try RefusingServer(date: "Sun, 06 Nov 1994 08:49:37 GMT")
            defer { server.stop() }
            try OpenSSL.makeCertificate("good", in: fixture)
            let checks = try await diagnose(fixture, url: "http://127.0.0.1:\(server.port)/", caFile: "good.pem")
            #expect(checks.map(\.severity) == [.ok, .warning, .ok, .ok, .ok], "\(checks)")
            #expect(checks.first?.text.contains("answers 401 invalid_client to a made-up client id") == true)
            #expect(checks.dropFirst().first?.name == "clock and endpoint")
        }
    }

    @Test("a collector that does not take telemetry is a warning, because tokens do not need it")
    func collectorRefuses() async throws {
        try await OperatorFixture.with { fixture in
            let server = try RefusingServer(date: "Sun, 06 Nov 1994 08:49:37 GMT")
            defer { server.stop() }
            let url = "http://127.0.0.1:\(server.port)"
            let names: [Setting.Name] = [.tokenEndpoint, .userinfoEndpoint, .tokeninfoEndpoint, .revocationEndpoint]
            let flags = names.map { ($0, url + "/") } + [(.otlpEndpoint, url)]
            let checks = await Doctor(context: try fixture.context(flags)).endpointChecks()
            let collector = checks.filter { $0.name.contains("collector") }
            #expect(collector.map(\.severity) == [.warning, .warning], "metrics and spans")
            #expect(collector.first?.text.contains("/v1/metrics answers 401") == true)
            #expect(collector.last?.text.contains("/v1/traces answers 401") == true)
        }
    }

    @Test(
        "a collector's answer to an empty request is judged",
        arguments: [
            (200, Check.Severity.ok, "as a collector does"), (202, .ok, "as a collector does"),
            (302, .warning, "redirect"), (403, .warning, "does not accept"), (404, .warning, "path is wrong"),
            (415, .warning, "JSON"), (503, .warning, "does not work now"),
        ]
    )
    func collectorAnswers(status: Int, severity: Check.Severity, text: String) throws {
        let check = Doctor.collector(try Endpoint("https://c.example/v1/metrics"), status: status)
        #expect(check.severity == severity)
        #expect(check.finding.contains(text))
    }

    @Test("an answer without a key that can be used is a fault")
    func keys() async throws {
        try await OperatorFixture.with { fixture in
            let server = try RefusingServer(date: "Sun, 06 Nov 1994 08:49:37 GMT")
            defer { server.stop() }
            let url = "http://127.0.0.1:\(server.port)/"
            let checks = await Doctor(context: try fixture.context([(.appKeys, url)])).endpointChecks()
            let check = try #require(checks.last { $0.name.contains("app's keys") })
            #expect(check.severity == .fault && check.text.contains("without a key that can be used"))
        }
    }

    @Test("an address that is not that of the endpoint is a fault", arguments: ["404 Not Found", "302 Found"])
    func wrongAddress(status: String) async throws {
        try await OperatorFixture.with { fixture in
            let server = try RefusingServer(status: status, date: "Sun, 06 Nov 1994 08:49:37 GMT", body: "<html>")
            defer { server.stop() }
            try OpenSSL.makeCertificate("good", in: fixture)
            let checks = try await diagnose(fixture, url: "http://127.0.0.1:\(server.port)/", caFile: "good.pem")
            #expect(checks.map(\.severity) == [.fault, .warning, .fault, .fault, .fault], "\(checks)")
            #expect(checks.exitCode == .peerUnreachable)
        }
    }

    @Test(
        "the answer to a made-up token is judged",
        arguments: [
            (400, "invalid_grant", Check.Severity.ok, "knows the client id '1-a'"),
            (401, "invalid_client", .fault, "refuses the client id '1-a'"),
            (400, "deleted_client", .fault, "refuses the client id '1-a'"),
            (400, "deleted_client", .fault, "restore it within 30 days"),
            (400, "disabled_client", .fault, "e-mails to the owners"),
            (400, "invalid_request", .warning, "expected invalid_grant"), (401, nil, .fault, "not a token endpoint"),
            (404, nil, .fault, "the path is wrong"), (404, "invalid_grant", .fault, "the path is wrong"),
            (302, nil, .fault, "redirect"), (200, nil, .fault, "not a token endpoint"), (503, nil, .warning, "later"),
            (429, nil, .warning, "later"),
        ] as [(Int, String?, Check.Severity, String)]
    )
    func judged(status: Int, code: String?, severity: Check.Severity, text: String) async throws {
        try await OperatorFixture.with { fixture in
            let endpoint = try fixture.context().configuration.endpoints.token
            let check = Doctor.token(endpoint, asking: "1-a", status: status, code: code)
            #expect(check.severity == severity && check.text.contains(text), "\(check)")
        }
    }

    @Test("a certificate that is not trusted is a fault that names --ca-file")
    func wrongAuthority() async throws {
        try await OperatorFixture.with { fixture in
            try OpenSSL.makeCertificate("good", in: fixture)
            try OpenSSL.makeCertificate("other", in: fixture)
            let server = try OpenSSL.Server(certificate: "good", in: fixture)
            defer { server.stop() }
            let checks = try await diagnose(fixture, url: "https://localhost:\(server.port)/", caFile: "other.pem")
            #expect(checks.map(\.severity) == [.fault, .fault, .fault, .fault])
            #expect(checks.first?.text.contains("--ca-file") == true)
            #expect(checks.exitCode == .peerUnreachable)
        }
    }

    @Test("a refused connection and an unknown name are distinguished")
    func unreachable() async throws {
        try await OperatorFixture.with { fixture in
            try OpenSSL.makeCertificate("good", in: fixture)
            let closed = try await diagnose(fixture, url: "http://127.0.0.1:1/", caFile: "good.pem")
            #expect(closed.first?.text.contains("firewall") == true, "\(closed)")
            let nameless = try await diagnose(fixture, url: "https://nowhere.invalid/", caFile: "good.pem")
            #expect(nameless.first?.text.contains("DNS") == true, "\(nameless)")
            #expect((closed + nameless).allSatisfy { $0.severity == .fault && $0.isAboutEndpoint })
        }
    }
}

/// Certificates and a server from the `openssl` program.
private enum OpenSSL {
    private static let path = "/usr/bin/openssl"

    static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: path) }

    /// Makes `name.key` and the self-signed certificate `name.pem` for localhost.
    static func makeCertificate(_ name: String, in fixture: OperatorFixture) throws {
        let files = ["-keyout", fixture.path("\(name).key"), "-out", fixture.path("\(name).pem")]
        let kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        let names = ["-subj", "/CN=\(name)", "-addext", "subjectAltName=DNS:localhost"]
        try ChildProcess(path, words(kind) + names + files).waitForSuccess()
    }

    private static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }

    /// A server that answers each request with a page about the connection.
    final class Server {
        let port: Int
        private let process: ChildProcess

        /// Starts the server and returns when it is ready.
        init(certificate: String, in fixture: OperatorFixture) throws {
            // With port 0 the system chooses a free port, and the program prints it.
            let files = ["-key", fixture.path("\(certificate).key"), "-cert", fixture.path("\(certificate).pem")]
            process = try ChildProcess(path, words("s_server -accept 127.0.0.1:0 -www") + files)
            let text = try process.waitForLine(with: "ACCEPT")
            let line = text.split(separator: "\n").first { $0.hasPrefix("ACCEPT") } ?? ""
            guard let port = line.split(separator: ":").last.flatMap({ Int($0) }) else {
                throw ChildProcess.Failure(message: "no port in \(text)")
            }
            self.port = port
        }

        func stop() { process.kill() }
    }
}

/// A server that answers every connection with 401 and a date, on a thread of its own.
private final class RefusingServer: Sendable {
    struct Failure: Error {}

    let port: Int
    private let listener: Int32

    init(status: String = "401 No", date: String, body: String = #"{"error":"invalid_client"}"#) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(listener, generic, length) | listen(listener, 16) | getsockname(listener, generic, &length)
            }
        }
        guard result == 0 else { throw Failure() }
        port = Int(UInt16(bigEndian: address.sin_port))
        let answer = Array(
            "HTTP/1.1 \(status)\r\nDate: \(date)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
                .utf8
        )
        let noSignal = Int32(MSG_NOSIGNAL)
        Thread.detachNewThread {
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                var request = [UInt8](repeating: 0, count: 4096)
                if recv(connection, &request, request.count, 0) > 0 {
                    _ = send(connection, answer, answer.count, noSignal)
                }
                close(connection)
            }
        }
    }

    /// Ends the thread.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}
