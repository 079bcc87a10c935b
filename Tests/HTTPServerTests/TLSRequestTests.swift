import Crypto
import Foundation
import HTTPClient
import TestSupport
import Testing

@testable import HTTPServer

@Suite(
    "Responses over TLS",
    .timeLimit(.minutes(2)),
    .enabled(if: Tool.openssl.isInstalled, "openssl is not installed")
)
struct TLSRequestTests {
    @Test("are the same as over plain HTTP, also for large bodies and slow handlers")
    func requests() async throws {
        let authority = try TestAuthority()
        defer { authority.remove() }
        try authority.issue("server", for: "IP:127.0.0.1")
        let certificate = try ServerCertificate(
            chain: Array(Data(contentsOf: URL(filePath: authority.path("server.pem")))),
            key: Secret(utf8: Data(contentsOf: URL(filePath: authority.path("server.key"))))
        )
        let echo: HTTPServer.Handler = { request in
            await Task.yield()
            return .respond(ServerResponse(body: request.body))
        }
        try await withServer(.init(threads: 2, certificate: certificate), handler: echo) { server in
            var settings = HTTPClient.Configuration()
            settings.caFile = authority.certificateFile
            let client = try HTTPClient(configuration: settings)
            let url = try Endpoint("https://127.0.0.1:\(server.port)/")
            try await withThrowingTaskGroup { group in
                for number in 0..<40 {
                    group.addTask {
                        let body = Array(repeating: UInt8(number), count: 1 + number * 1600)
                        let request = HTTPRequest(method: .post, endpoint: url, body: HTTPBody(body))
                        let answer = try await client.send(request)
                        #expect(answer.status == 200)
                        #expect(answer.body.reveal() == body)
                    }
                }
                try await group.waitForAll()
            }
            client.shutDown()
        }
    }
}
