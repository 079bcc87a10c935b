import TestSupport

/// A TLS server in its own process, ready when `init` returns.
final class TLSServer {
    let port: Int
    private let process: ChildProcess

    /// Starts `nghttpd` for HTTP/2; it serves the authority's folder.
    static func http2(_ authority: TestAuthority, certificate: String) throws -> TLSServer {
        let port = try ScriptedServer.unusedPort()
        let arguments = ["-v", "-a", "127.0.0.1", "-d", authority.path(""), "\(port)"]
        let files = [authority.path("\(certificate).key"), authority.path("\(certificate).pem")]
        return try TLSServer(tool: .nghttpd, arguments + files, port: port, readyWhenItSays: "listen 127.0.0.1")
    }

    /// Starts `openssl s_server` for HTTP/1.0.
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
        try process.waitForLine(with: text)
    }

    func stop() {
        process.kill()
    }
}
