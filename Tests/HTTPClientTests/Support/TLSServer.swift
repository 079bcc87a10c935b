import Foundation
import TestSupport

/// A throw-away authority and the certificates it signed, in a folder of their own, made by `openssl`.
struct TestAuthority {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "http-client-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try openssl(
            "req -x509 \(Self.newKey) -keyout \(path("ca.key")) -out \(path("ca.pem")) -days 2 -subj /CN=Test-CA"
        )
    }

    var certificateFile: String { path("ca.pem") }

    func path(_ name: String) -> String { folder.appending(path: name).path }

    func remove() {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Makes `name.key` and `name.pem`, good for the names given (`DNS:localhost,IP:127.0.0.1`).
    func issue(_ name: String, for subjects: String) throws {
        try openssl("req \(Self.newKey) -keyout \(path(name)).key -out \(path(name)).csr -subj /CN=test")
        try Data("subjectAltName=\(subjects)\n".utf8).write(to: folder.appending(path: "\(name).ext"))
        try openssl(
            "x509 -req -in \(path(name)).csr -CA \(path("ca.pem")) -CAkey \(path("ca.key")) -CAcreateserial "
                + "-days 2 -extfile \(path(name)).ext -out \(path(name)).pem"
        )
    }

    private static let newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"

    private func openssl(_ arguments: String) throws {
        let words = arguments.split(separator: " ").map(String.init)
        try ChildProcess(try Tool.openssl.path, words).waitForSuccess()
    }
}

/// The programs that the TLS tests are served by.
enum Tool: String {
    case openssl
    case nghttpd

    private var found: String? {
        ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map { "\($0)/\(rawValue)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    var isInstalled: Bool { found != nil }

    var path: String {
        get throws {
            guard let found else { throw ChildProcess.Failure(what: "\(rawValue) is not installed") }
            return found
        }
    }
}

/// A TLS server in a process of its own, ready when `init` returns.
final class TLSServer {
    let port: Int
    private let process: ChildProcess

    /// HTTP/2 by `nghttpd`, which serves the authority's own folder.
    static func http2(_ authority: TestAuthority, certificate: String) throws -> TLSServer {
        let port = try ScriptedServer.unusedPort()
        let arguments = ["-v", "-a", "127.0.0.1", "-d", authority.folder.path, "\(port)"]
        let files = [authority.path("\(certificate).key"), authority.path("\(certificate).pem")]
        return try TLSServer(tool: .nghttpd, arguments + files, port: port, readyWhenItSays: "listen 127.0.0.1")
    }

    /// HTTP/1.0 by `openssl s_server`.
    static func http1(
        _ authority: TestAuthority,
        certificate: String,
        options: [String] = []
    ) throws -> TLSServer {
        let port = try ScriptedServer.unusedPort()
        let files = ["-key", authority.path("\(certificate).key"), "-cert", authority.path("\(certificate).pem")]
        let arguments = ["s_server", "-accept", "127.0.0.1:\(port)", "-www"] + files + options
        return try TLSServer(tool: .openssl, arguments, port: port, readyWhenItSays: "ACCEPT")
    }

    private init(tool: Tool, _ arguments: [String], port: Int, readyWhenItSays text: String) throws {
        self.port = port
        process = try ChildProcess(try tool.path, arguments)
        try process.waitForOutput(text)
    }

    func stop() {
        process.kill()
    }
}
