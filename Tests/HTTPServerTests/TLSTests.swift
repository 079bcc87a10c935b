import Crypto
import Foundation
import TestSupport
import Testing

@testable import Base
@testable import HTTPServer

@Suite(
    "Requests over TLS",
    .timeLimit(.minutes(2)),
    .enabled(if: Tool.openssl.isInstalled, "openssl is not installed")
)
struct TLSTests {
    private let authority: TestAuthority

    init() throws {
        authority = try TestAuthority()
        try authority.issue("server", for: "IP:127.0.0.1")
    }

    private static func respond(_: ServerRequest) async -> ServerReply { .respond(.text("hello")) }

    private func certificate(_ name: String = "server") throws -> ServerCertificate {
        try ServerCertificate(
            chain: Array(Data(contentsOf: URL(filePath: authority.path("\(name).pem")))),
            key: Secret(utf8: Data(contentsOf: URL(filePath: authority.path("\(name).key"))))
        )
    }

    /// Returns the report of `openssl s_client` on one handshake; throws its output if the server refuses it.
    private func handshake(with server: HTTPServer, _ options: [String] = []) async throws -> String {
        let arguments = ["s_client", "-connect", "127.0.0.1:\(server.port)", "-CAfile", authority.certificateFile]
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result { try ChildProcess(try Tool.openssl.path, arguments + options).waitForSuccess() }
                )
            }
        }
    }

    @Test(
        "use TLS 1.2 or 1.3, with forward secrecy",
        arguments: [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")]
    )
    func versions(option: String, name: String) async throws {
        defer { authority.remove() }
        try await withServer(.init(certificate: try certificate()), handler: Self.respond) { server in
            let report = try await handshake(with: server, [option, "-verify_return_error"])
            #expect(report.contains("New, \(name), Cipher is"), "\(report)")
        }
    }

    @Test(
        "do not use older versions or weaker ciphers",
        arguments: [
            ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], ["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
        ]
    )
    func refusedVersions(options: [String]) async throws {
        defer { authority.remove() }
        try await withServer(.init(certificate: try certificate()), handler: Self.respond) { server in
            await #expect(throws: ChildProcess.Failure.self) { try await handshake(with: server, options) }
            _ = try await handshake(with: server)
        }
    }

    @Test(
        "use only what Mozilla's intermediate configuration has: no CCM, X448, P-521 and DHE",
        arguments: [
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-CCM"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-CCM"],
            ["-tls1_3", "-ciphersuites", "TLS_AES_128_CCM_SHA256"], ["-tls1_3", "-groups", "X448"],
            ["-tls1_3", "-groups", "P-521"], ["-tls1_2", "-groups", "P-521"], ["-tls1_3", "-groups", "ffdhe2048"],
        ]
    )
    func refusedSuites(options: [String]) async throws {
        defer { authority.remove() }
        try await withServer(.init(certificate: try certificate()), handler: Self.respond) { server in
            await #expect(throws: ChildProcess.Failure.self) { try await handshake(with: server, options) }
        }
    }

    @Test(
        "use each suite and each curve of Mozilla's intermediate configuration that an elliptic key can have",
        arguments: [
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"],
            ["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"],
            ["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
            ["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"],
            ["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"], ["-groups", "X25519"], ["-groups", "P-256"],
            ["-groups", "P-384"],
        ]
    )
    func offeredSuites(options: [String]) async throws {
        defer { authority.remove() }
        try await withServer(.init(certificate: try certificate()), handler: Self.respond) { server in
            let report = try await handshake(with: server, options)
            #expect(!report.contains("Cipher is (NONE)"), "\(report)")
        }
    }

    @Test("show a replaced certificate to new connections")
    func replaced() async throws {
        try authority.issue("next", for: "IP:127.0.0.1,DNS:next")
        defer { authority.remove() }
        try await withServer(.init(certificate: try certificate()), handler: Self.respond) { server in
            let verified = ["-verify_return_error", "-verify_hostname", "next"]
            await #expect(throws: ChildProcess.Failure.self) { try await handshake(with: server, verified) }
            server.present(try certificate("next"))
            #expect(try await handshake(with: server, verified).contains("Verification: OK"))
        }
    }

    @Test("in plain text are closed without a response")
    func plainText() async throws {
        defer { authority.remove() }
        try await withServer(.init(certificate: try certificate()), handler: Self.respond) { server in
            let client = try RawClient(port: server.port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(await client.everything()?.contains("HTTP/") == false)
            try await poll { server.openConnections == 0 }
        }
    }

    /// The first bytes of a ClientHello of 512 bytes, and of a record of 5.
    private static let partialHellos: [[UInt8]] = [[0x16, 0x03, 0x01, 0x02, 0x00, 0x01], [0x16]]

    @Test(
        "whose handshake does not end lose their connection, without a response in plain text",
        arguments: partialHellos
    )
    func stalledHandshake(partialHello: [UInt8]) async throws {
        defer { authority.remove() }
        let time = ManualTime()
        try await withServer(.init(certificate: try certificate()), time: time, handler: Self.respond) { server in
            let client = try RawClient(port: server.port)
            await client.send(partialHello)
            try await poll(until: { server.clients.kinds == [.head] }, step: server.clients.checkAll)
            // An occasional byte does not keep the connection alive.
            await client.send([0x00])
            time.advance(by: .milliseconds(9_999))
            server.clients.checkAll()
            #expect(server.clients.kinds == [.head])
            time.advance(by: .milliseconds(1))
            server.clients.checkAll()
            #expect(await client.everything() == "")
            try await poll { server.openConnections == 0 }
        }
    }

    @Test("have one deadline for head and body, however often a piece of the body arrives")
    func slowBody() async throws {
        defer { authority.remove() }
        let time = ManualTime()
        let pipe = authority.path("body")
        try #require(mkfifo(pipe, 0o600) == 0)
        // For reading too, so that it opens before the client does.
        let input = open(pipe, O_RDWR | O_CLOEXEC)
        defer { close(input) }
        try await withServer(.init(certificate: try certificate()), time: time, handler: Self.respond) { server in
            let command = "exec '\(try Tool.openssl.path)' s_client -quiet -connect 127.0.0.1:\(server.port) <'\(pipe)'"
            let client = try ChildProcess("/bin/sh", ["-c", command])
            defer { client.kill() }
            let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n"
            #expect(write(input, head, head.utf8.count) == head.utf8.count)
            try await poll { server.clients.kinds == [.body] }
            for piece in 1...5 {
                time.advance(by: .milliseconds(5_999))
                #expect(write(input, "a", 1) == 1)
                try await poll { server.requestMemory == piece }
                server.clients.checkAll()
                #expect(server.clients.kinds == [.body])
            }
            time.advance(by: .milliseconds(5))
            server.clients.checkAll()
            try await poll { server.openConnections == 0 }
        }
    }

    @Test("that never begin lose their connection")
    func silence() async throws {
        defer { authority.remove() }
        let time = ManualTime()
        try await withServer(.init(certificate: try certificate()), time: time, handler: Self.respond) { server in
            let client = try RawClient(port: server.port)
            try await poll { server.openConnections == 1 }
            time.advance(by: .seconds(60))
            server.clients.checkAll()
            #expect(await client.everything() == "")
            try await poll { server.openConnections == 0 }
        }
    }

    @Test("count towards the connections of an address from the handshake on")
    func perAddress() async throws {
        defer { authority.remove() }
        var configuration = HTTPServer.Configuration(certificate: try certificate())
        configuration.maximumConnectionsPerAddress = 1
        try await withServer(configuration, handler: Self.respond) { server in
            let first = try RawClient(port: server.port)
            await first.send(Self.partialHellos[0])
            try await poll { server.openConnections == 1 }
            await #expect(throws: ChildProcess.Failure.self) { try await handshake(with: server) }
            first.hangUp()
            try await poll { server.openConnections == 0 }
            _ = try await handshake(with: server)
        }
    }
}
