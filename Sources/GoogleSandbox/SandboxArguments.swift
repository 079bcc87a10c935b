/// The parsed command line.
struct SandboxArguments: Equatable {
    var port: UInt16 = 8099
    var isQuiet = false
    var wantsHelp = false

    init(_ words: some Sequence<String>) throws(ArgumentError) {
        var rest = Array(words)[...]
        while let word = rest.popFirst() {
            switch word {
            case "--help", "-h": wantsHelp = true
            case "--quiet": isQuiet = true
            case "--port":
                guard let number = rest.popFirst().flatMap({ UInt16($0) }) else {
                    throw ArgumentError(message: "--port needs a number from 0 to 65535")
                }
                port = number
            default:
                throw ArgumentError(message: "unknown argument \(word)")
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
          POST /control/grants     create grants: {"count": 10, "prefix": "user"} or {"grants": [{"email": "a@example.com"}]}
          GET  /control/grants     list them with their refresh tokens
          POST /control/grants/set script some: {"email": "a@example.com", "revoked": true}; fields: revoked, answer,
                                   latency_ms, hang, hold, lifetime; chosen by refresh_token, sub or email
          POST /control/settings   change settings: lifetime, rotation, strict_rotation, latency_ms, latency_jitter_ms, error_rate,
                                   error, wave_rate, outage, retry_after, refresh_token_expires_in, clients, seed
          GET  /control/settings   the current settings
          GET  /control/faults     the names that "outage", "error" and "answer" accept
          POST /control/release    release the requests of grants on hold: all, or those chosen
          GET  /control/wait?holding=N   answers once N requests are on hold
          GET  /control/stats      counts of requests; with ?grants=1 also for each grant
          POST /control/reset      delete everything
          POST /control/security-events, .../rotate-key, .../stream, /control/service-accounts

        It does not protect secrets: do not give it real tokens.

        """
}

/// A command line that cannot be parsed.
struct ArgumentError: Error {
    let message: String
}
