import Glibc
import Testing

@testable import HTTPServer

@Suite("Sockets of every kind are opened, checked and cleaned up", .timeLimit(.minutes(10)))
struct ListeningTests {
    private static let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    private static func peer(_ request: ServerRequest) async -> ServerReply {
        .respond(.text("\(request.peerAddress) \(request.clientAddress)"))
    }

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        var template = Array("/tmp/http-server-XXXXXX".utf8CString)
        let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
        defer {
            unlink(folder + "/s")
            rmdir(folder)
        }
        try await body(folder + "/s")
    }

    @Test("A unix socket has its mode, serves, and is removed at the end", arguments: [0o600, 0o666] as [UInt32])
    func unixSocket(mode: UInt32) async throws {
        try await withFolder { path in
            try await withServer(.init(listen: .unix(path: path, mode: mode)), handler: Self.peer) { server in
                var status = stat()
                #expect(lstat(path, &status) == 0)
                #expect(status.st_mode & 0o777 == mode)
                #expect(server.port == 0)
                let client = try RawClient(path: path)
                await client.send(Self.get)
                #expect(await client.answer()?.body == "unix unix")
            }
            #expect(access(path, F_OK) != 0)
        }
    }

    @Test(
        "The reach of an inherited socket is that of its address",
        arguments: [
            ("127.0.0.1", NetworkReach.thisMachine), ("::1", .thisMachine), ("0.0.0.0", .network), ("::", .network),
        ]
    )
    func reach(address: String, reach: NetworkReach) throws {
        let socket = try ListeningSocket(.tcp(address: address, port: 0)).descriptor
        defer { close(socket) }
        #expect(ListenAddress.inherited(descriptor: socket).reach == reach)
        #expect(ListenAddress.tcp(address: address, port: 0).reach == reach)
    }

    @Test("An inherited unix socket is reached through its file")
    func unixReach() async throws {
        try await withFolder { path in
            let socket = try ListeningSocket(.unix(path: path, mode: 0o600)).descriptor
            defer { close(socket) }
            #expect(ListenAddress.inherited(descriptor: socket).reach == .unixSocket)
        }
        #expect(ListenAddress.inherited(descriptor: -1).reach == .network)
    }

    @Test("A stale socket file is replaced")
    func staleSocket() async throws {
        try await withFolder { path in
            let unused = try ListeningSocket(.unix(path: path, mode: 0o600)).descriptor
            close(unused)
            #expect(access(path, F_OK) == 0)
            try await withServer(.init(listen: .unix(path: path, mode: 0o600)), handler: Self.peer) { _ in
                let client = try RawClient(path: path)
                await client.send(Self.get)
                #expect(await client.answer()?.status == 200)
            }
        }
    }

    @Test("A socket in use is refused and keeps working")
    func liveSocket() async throws {
        try await withFolder { path in
            let configuration = HTTPServer.Configuration(listen: .unix(path: path, mode: 0o600))
            try await withServer(configuration, handler: Self.peer) { _ in
                let error = #expect(throws: HTTPServerError.self) {
                    try HTTPServer(configuration: configuration, handler: Self.peer)
                }
                #expect(error?.systemError == EADDRINUSE)
                let client = try RawClient(path: path)
                await client.send(Self.get)
                #expect(await client.answer()?.status == 200)
            }
        }
    }

    @Test("Of servers that start at once on a stale socket file, one listens")
    func staleSocketOfTwo() async throws {
        try await withFolder { path in
            let address = try #require(SocketAddress(path: path))
            for _ in 0..<2000 {
                // Bound and never listening: a program that another test starts now would keep a listener open.
                unlink(path)
                let stale = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
                try #require(address.bind(stale))
                close(stale)
                let listeners = await withTaskGroup { group in
                    for _ in 0..<2 { group.addTask { try? ListeningSocket(.unix(path: path, mode: 0o600)).descriptor } }
                    return await group.reduce(into: []) { $0 += [$1].compactMap(\.self) }
                }
                defer { for listener in listeners { close(listener) } }
                try #require(listeners.count == 1)
                _ = try RawClient(path: path)
            }
        }
    }

    @Test("A socket whose server is stuck with a full queue counts as in use, at once")
    func fullQueue() async throws {
        try await withFolder { path in
            let address = try #require(SocketAddress(path: path))
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
            let listener = socket(AF_UNIX, kind, 0)
            defer { close(listener) }
            #expect(address.bind(listener) && listen(listener, 0) == 0)
            var clients: [Int32] = []
            defer { for client in clients { close(client) } }
            repeat { clients.append(socket(AF_UNIX, kind, 0)) } while address.connect(clients[clients.count - 1])
            #expect(errno == EAGAIN)
            let error = #expect(throws: HTTPServerError.self) {
                _ = try ListeningSocket(.unix(path: path, mode: 0o600))
            }
            #expect(error?.isAddressInUse == true)
        }
    }

    @Test("A file that is not a socket is never removed")
    func otherFile() async throws {
        try await withFolder { path in
            close(open(path, O_CREAT | O_WRONLY, 0o600))
            let error = #expect(throws: HTTPServerError.self) {
                try HTTPServer(configuration: .init(listen: .unix(path: path, mode: 0o600)), handler: Self.peer)
            }
            #expect(error?.code == .cannotListen)
            #expect(access(path, F_OK) == 0)
        }
    }

    @Test("A stopping server keeps a file that has replaced its socket")
    func replacedFile() async throws {
        try await withFolder { path in
            try await withServer(.init(listen: .unix(path: path, mode: 0o600)), handler: Self.peer) { _ in
                unlink(path)
                close(open(path, O_CREAT | O_WRONLY, 0o600))
            }
            #expect(access(path, F_OK) == 0)
        }
    }

    @Test("An inherited socket serves, and still listens after the server has ended")
    func inherited() async throws {
        let socket = try ListeningSocket(.tcp(address: "127.0.0.1", port: 0))
        let (descriptor, port) = (socket.descriptor, socket.port)
        defer { close(descriptor) }
        let inheritedDescriptor = dup(descriptor)
        let environment = ["LISTEN_PID": "\(getpid())", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "public"]
        let sockets = try HTTPServer.inheritedSockets(
            environment: environment,
            processID: getpid(),
            first: inheritedDescriptor
        )
        #expect(sockets == ["public": inheritedDescriptor])
        #expect(fcntl(inheritedDescriptor, F_GETFD) & FD_CLOEXEC != 0)
        try await withServer(.init(listen: .inherited(descriptor: inheritedDescriptor)), handler: Self.peer) { server in
            #expect(server.port == port)
            let client = try RawClient(port: port)
            await client.send(Self.get)
            #expect(await client.answer()?.body == "127.0.0.1 127.0.0.1")
        }
        _ = try RawClient(port: port)
    }

    @Test("Sockets meant for another process are ignored, and empty variables")
    func otherProcess() throws {
        let own = "\(getpid())"
        for environment in [[:], ["LISTEN_PID": "1", "LISTEN_FDS": "1"], ["LISTEN_PID": own, "LISTEN_FDS": ""]] {
            #expect(try HTTPServer.inheritedSockets(environment: environment, processID: getpid()).isEmpty)
        }
    }

    @Test("A descriptor that does not listen, or has a duplicate name, is refused")
    func badInheritedSocket() throws {
        let plain = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(plain) }
        for (count, names) in [("1", "a"), ("x", "a"), ("-1", "a"), ("99999", "a")] {
            let environment = ["LISTEN_PID": "\(getpid())", "LISTEN_FDS": count, "LISTEN_FDNAMES": names]
            let error = #expect(throws: HTTPServerError.self) {
                try HTTPServer.inheritedSockets(environment: environment, processID: getpid(), first: plain)
            }
            #expect(error?.code == .badInheritedSocket)
        }
    }

    @Test("The limit of open files can be raised to the hard one")
    func openFiles() throws {
        var limit = rlimit()
        let raised = try HTTPServer.raiseOpenFileLimit()
        #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        #expect(limit.rlim_cur == limit.rlim_max)
        #expect(raised == Int(clamping: limit.rlim_max))
    }
}
