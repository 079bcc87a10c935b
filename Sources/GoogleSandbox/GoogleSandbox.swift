private import Base
private import Dispatch
private import Glibc
private import HTTPServer

/// The command `google-sandbox`: a fake of Google's OAuth endpoints on the loopback interface.
///
///     google-sandbox --port 8099 &
///     curl --data '{"count": 1}' http://127.0.0.1:8099/control/grants
///     curl --data '{"outage": "http503"}' http://127.0.0.1:8099/control/settings
@main
enum GoogleSandbox {
    static func main() async {
        let arguments: SandboxArguments
        do throws(ControlError) {
            arguments = try SandboxArguments(CommandLine.arguments.dropFirst())
        } catch {
            write("google-sandbox: \(error.message)\nTry google-sandbox --help.\n", to: STDERR_FILENO)
            exit(EX_USAGE)
        }
        if arguments.wantsHelp {
            write(SandboxArguments.help, to: STDOUT_FILENO)
            return
        }

        let (stop, continuation) = AsyncStream<Void>.makeStream()
        let signals = onTerminationSignals { continuation.finish() }
        defer { for source in signals { source.cancel() } }
        let sandbox = Sandbox(time: SystemTime(), random: SystemRandom()) { line in
            if !arguments.isQuiet { write(line + "\n", to: STDOUT_FILENO) }
        }
        do throws(HTTPServerError) {
            // One control request can create thousands of grants, and thousands of clients can wait during an outage.
            var configuration = HTTPServer.Configuration(listen: .tcp(address: "127.0.0.1", port: arguments.port))
            configuration.limits.bodyBytes = 64 << 20
            configuration.maximumConnections = 16_384
            let server = try HTTPServer(configuration: configuration, handler: sandbox.answer)
            write("google-sandbox listening on http://127.0.0.1:\(server.port)\n", to: STDOUT_FILENO)
            for await _ in stop {}
            await server.stop(within: .seconds(1))
        } catch {
            write("google-sandbox: \(error)\n", to: STDERR_FILENO)
            exit(EX_UNAVAILABLE)
        }
    }

    /// Calls back on SIGTERM and SIGINT as long as the sources are kept.
    private static func onTerminationSignals(_ body: @escaping @Sendable () -> Void) -> [any DispatchSourceSignal] {
        [SIGTERM, SIGINT].map { number in
            // Keeps the signal from ending the process. The source still receives it.
            _ = signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler(handler: body)
            source.activate()
            return source
        }
    }

    /// Writes the whole text at once, unbuffered, so that the reader of a pipe sees each line immediately.
    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let written = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
            // The reader of the output has closed it, so the text is dropped.
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }
}

/// The parsed command line.
struct SandboxArguments: Equatable {
    var port: UInt16 = 8099
    var isQuiet = false
    var wantsHelp = false

    init(_ words: some Sequence<String>) throws(ControlError) {
        var rest = Array(words)[...]
        while let word = rest.popFirst() {
            switch word {
            case "--help", "-h": wantsHelp = true
            case "--quiet": isQuiet = true
            case "--port":
                guard let number = rest.popFirst().flatMap({ UInt16($0) }) else {
                    throw ControlError("--port needs a number from 0 to 65535")
                }
                port = number
            default:
                throw ControlError("unknown argument \(word)")
            }
        }
    }

    static let help = """
        usage: google-sandbox [--port N] [--quiet]

        A fake of Google's OAuth endpoints, on http://127.0.0.1.

          --port N   listen on port N (default 8099; 0 takes a free one and prints it)
          --quiet    print only the address
          --help     print this

        Google's endpoints:
          POST /token            refresh an access token
          GET  /oauth2/v2/userinfo, /oauth2/v3/userinfo, /v1/userinfo
          GET or POST /tokeninfo
          POST /revoke
          GET  /.well-known/risc-configuration, /oauth2/v3/certs
          GET or POST /v1beta/stream...  the stream of security events

        Control routes (JSON in, JSON out):
          POST /control/grants     create grants: {"count": 10, "prefix": "user"} or {"grants": [{"email": "a@example.com"}]};
                                   fields of a grant: email, sub, name, scope, lifetime, client_id
          GET  /control/grants     list them with their refresh tokens
          POST /control/grants/set script some: {"email": "a@example.com", "revoked": true}; fields: revoked, answer,
                                   latency_ms, hang, hold, lifetime; chosen by refresh_token, sub or email
          POST /control/settings   change settings: lifetime, rotation, strict_rotation, latency_ms, latency_jitter_ms, error_rate,
                                   error, wave_rate, outage, retry_after, refresh_token_expires_in, clients, app_check,
                                   nonce_lifetime_ms, clock_ahead_ms, seed
          GET  /control/settings   the current settings
          GET  /control/faults     the names that "outage", "error" and "answer" accept
          POST /control/release    release the requests of grants on hold: all, or those chosen
          GET  /control/wait?holding=N   answers once N requests are on hold
          GET  /control/stats      counts of requests; with ?grants=1 also for each grant
          POST /control/expire-nonces   let the nonces of all proofs (DPoP) expire
          POST /control/reset      delete everything
          POST /control/security-events, .../rotate-key, .../stream, /control/service-accounts
          POST /control/id-tokens  sign an ID token with these claims: {"sub": "1", "email": "a@example.com", "aud": "client"}

        It does not protect secrets: do not give it real tokens.

        """
}
