import Base
import Crypto
import Routes
import Storage

extension Setting {
    private static let defaultGrace = "\(Int(Session.defaultGrace.inSeconds))"

    /// The settings of the two listeners, their callers, and the notices.
    static let listening: [Setting] = [
        Setting(.listen, placeholder: "PLACE", change: .restart(\.publicListener)) {
            """
            The address of the app's routes: ADDRESS:PORT, or systemd:NAME for a socket that systemd passes. Plain \
            HTTP: a proxy in front terminates TLS. Without this setting they are not served.
            """
        },
        Setting(.listenInternal, placeholder: "PLACE", repeatable: true, change: .restart(\.internalListeners)) {
            """
            The address at which tokens are vended, and metrics, health and status are served: unix:PATH, ADDRESS:PORT \
            on this machine, or systemd:NAME; any address with --internal-certificate. Can repeat, as in a unix socket for \
            services and 127.0.0.1:9464 for Prometheus; in the environment and the file a list with commas. Without this \
            setting no token is vended.
            """
        },
        Setting(.internalCertificate, placeholder: "FILE", change: .file(\.internalCertificateFile)) {
            """
            Certificate of the internal listener (PEM), followed by those between it and its root. Its addresses other than \
            unix:PATH then serve TLS, and /status and the details of /readyz need a service's credential. Needs --internal-key.
            """
        },
        Setting(.internalKey, placeholder: "FILE", change: .file(\.internalKeyFile)) {
            "The key of that certificate (PEM, without a passphrase); mode 0600."
        },
        Setting(.internalMetrics, default: "no", change: .restart(\.servesInternalMetrics)) {
            "Serve /metrics over TLS too, to everyone who reaches the internal listener. Without TLS it is always served."
        },
        Setting(.socketMode, placeholder: "MODE", default: "0660", change: .restart(\.socketMode)) {
            "The file mode of a unix socket, in octal; its group is the worker's."
        },
        Setting(.trustedProxy, placeholder: "ADDRESS", repeatable: true, change: .restart(\.trustedProxies)) {
            """
            A proxy, or a network such as 10.0.0.0/8, whose X-Forwarded-For, Forwarded and request ids are trusted. Can \
            repeat; in the environment and the file a list with commas.
            """
        },
        Setting(.googleCallsPerMinute, placeholder: "N", default: "60", change: .restart(\.googleCallsPerMinute)) {
            """
            The number of times per minute that one address can fail to sign in or to connect; 1 to 100000. Ten times as \
            many successful sign-ins are allowed, and ten times as many requests that refresh the app's tokens, log out, \
            disconnect or delete, taken together.
            """
        },
        Setting(
            .connectionsPerUser,
            placeholder: "N",
            default: "\(AppRoutes.Dependencies.defaultConnectionsPerUser)",
            change: .restart(\.connectionsPerUser)
        ) {
            "The maximum number of Google accounts that one user can have connected, 1 to 100. More are refused."
        },
        Setting(
            .linkByEmail,
            placeholder: "WHICH",
            default: EmailLinking.verified.rawValue,
            change: .restart(\.emailLinking)
        ) {
            """
            Whether a first Google sign-in can be linked to an existing user with the same e-mail address: verified \
            addresses only, any, or never. With any, a person who signed up with another person's address shares the \
            account once its owner signs in.
            """
        },
        Setting(.jwtSecretFile, placeholder: "FILE", change: .restart(\.jwtSecretFile)) {
            """
            File with the secret of the app's own tokens (HS256), at least \(TokenSigner.minimumSecretLength) bytes; on a second line the former one, while \
            it is being replaced. Or the variable JWT_SECRET, or a systemd credential named jwt-secret. Without it \
            the worker issues no sessions, and --listen needs --app-keys.
            """
        },
        Setting(.appKeys, placeholder: "PLACE", repeatable: true, change: .restart(\.appKeys)) {
            """
            Key set (JWKS) of a login whose tokens the app sends, as a URL or a file: RS256 or ES256. A URL must be https, except on this machine, \
            and is fetched again after its max-age, at least every day. A file is read again after five minutes. Can repeat; \
            in the environment and the file a list with commas.
            """
        },
        Setting(.appIssuer, placeholder: "TEXT", change: .restart(\.appIssuer)) {
            "The iss that a token of the app must have. With --app-keys, this or --app-audience is needed."
        },
        Setting(.appAudience, placeholder: "TEXT", change: .restart(\.appAudience)) {
            "The aud that a token of the app must have, or its client_id if it has no aud."
        },
        Setting(.appUserClaim, placeholder: "NAME", default: AppTokens.usualUserClaim, change: .restart(\.appUserClaim))
        {
            """
            The claim of a token of the app with the user's id: a claim that users cannot choose. With email only \
            verified addresses count. With sub, a token of the shared secret can have user_id instead.
            """
        },
        Setting(.sessionGrace, placeholder: "SECONDS", default: defaultGrace, change: .restart(\.sessionGrace)) {
            """
            Grace period in seconds (1 to \(Int(Session.maximumGrace.inSeconds))). A refresh token used a second time within it gets the current tokens instead \
            of ending the session. It must be at least three times as long as the app waits for an answer.
            """
        },
        Setting(
            .acceptFormerRefreshTokensUntil,
            placeholder: "DATE",
            change: .restart(\.acceptFormerRefreshTokensUntil)
        ) {
            """
            Accept refresh tokens that the former backend signed with the same secret, so that its users stay signed in, \
            until this date (2027-03-31: until it begins, UTC) or time (2027-03-31T12:00:00Z). Without it they are refused.
            """
        },
        Setting(.servicesFile, placeholder: "FILE", change: .file(\.servicesFile)) {
            """
            The services that can get tokens, as JSON. Or a systemd credential named services, of which a change takes \
            a restart. Without it the internal listener vends no tokens.
            """
        },
        Setting(
            .securityEventsEndpoint,
            placeholder: "URL",
            default: "https://accounts.google.com/.well-known/risc-configuration",
            change: .restart(\.securityEventsEndpoint)
        ) {
            "The document in which Google names the issuer and the keys of its security events."
        },
        Setting(
            .googleKeysEndpoint,
            placeholder: "URL",
            default: "https://www.googleapis.com/oauth2/v3/certs",
            change: .restart(\.googleKeysEndpoint)
        ) {
            "The keys with which Google signs ID tokens."
        },
        Setting(.noticeURL, placeholder: "URL", change: .restart(\.noticeURL)) {
            """
            The backend's URL for notices: an account is disconnected, connected again or has lost scopes, a session ended \
            because of reuse, or a user was deleted. Must be https, except on this machine.
            """
        },
        Setting(.noticeSecretFile, placeholder: "FILE", change: .restart(\.noticeSecretFile)) {
            """
            File with the secret that signs those notices, or with two, on a line each, while one replaces the other: \
            whsec_ and Base64, or a text of at least \(TokenSigner.minimumSecretLength) bytes. Or a systemd credential named notice-secret. Needed with \
            --notice-url.
            """
        },
        Setting(.expiryNotice, placeholder: "DAYS", default: "3", change: .restart(\.expiryNotice)) {
            "Notify the backend this many days (at most 30) before a refresh token's own end, if that is known; 0 for never."
        },
    ]
}
