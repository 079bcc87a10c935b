import GoogleOAuth
import Scheduler

extension Setting {
    /// The settings for keeping grants alive.
    static let refreshing: [Setting] = [
        Setting(.config, placeholder: "FILE", change: .restart(\.configurationFile)) {
            """
            Configuration file of KEY=value lines in the syntax of systemd's EnvironmentFile. A reload reads it again. \
            Without it: ~/.config/refresh-worker/refresh-worker.conf of a user other than root, otherwise \
            /etc/refresh-worker/refresh-worker.conf, if it exists.
            """
        },
        Setting(
            .database,
            placeholder: "PLACE",
            default: "/var/lib/refresh-worker/grants.sqlite",
            change: .restart(\.database)
        ) {
            """
            The database: a SQLite file, created if it does not exist; or postgres://USER@HOST/NAME for many workers \
            on one PostgreSQL, with ?schema=SCHEMA for another schema than refresh_worker; or url-file:FILE for a file \
            of mode 0600 with such an address and its password. If systemd passes a credential named database-url, \
            that is the default instead.
            """
        },
        Setting(.keyFile, placeholder: "FILE", default: "/etc/refresh-worker/keys", change: .file(\.keyFile)) {
            """
            The key ring that seals stored tokens; mode 0600. A running worker reads it again every five seconds. \
            If systemd passes a credential named key-ring, that is the default instead.
            """
        },
        Setting(.keyCommand, placeholder: "COMMAND", change: .restart(\.keyCommand)) {
            """
            A program that prints the key ring, such as one that decrypts it with a KMS. It reads \
            the content of --key-file from its standard input, and runs at the start, when that file changes and at a \
            reload. Blanks separate its words, quotes keep them together, and no shell takes part.
            """
        },
        Setting(.keyWrapCommand, placeholder: "COMMAND", change: .restart(\.keyWrapCommand)) {
            """
            The opposite of --key-command: it reads the key ring from its standard input and prints the new content of \
            --key-file. Only the commands that change the ring need it. What it prints replaces the file only after \
            --key-command has read the same ring from it.
            """
        },
        Setting(.clientID, placeholder: "ID", repeatable: true, change: .reload(.clients, \.clientIDs)) {
            """
            OAuth client id of the app that obtained the grants. Can repeat; in the environment and the file a list \
            with commas. Also GOOGLE_CLIENT_ID, or a systemd credential named client-id with one on each line. A \
            change of the environment or of the credential takes a restart.
            """
        },
        Setting(.clientSecretFile, placeholder: "FILE", change: .reload(.clients, \.clientSecretFile)) {
            """
            File with the secrets of confidential clients; Google's iOS clients do not have one. Each line \
            is a client id, a blank and its secret; with exactly one client id the secret alone is enough. Lines that \
            begin with # are comments. A secret is sent only with its own client id. A Google client id can stay here after \
            it is removed from --client-id: the grants stored for it are still refreshed.
            """
        },
        Setting(.serverClientID, placeholder: "ID", change: .reload(.clients, \.serverClientID)) {
            """
            OAuth client id of your server (type "Web application"), which exchanges the serverAuthCode of Google's SDK for \
            a grant. Its secret must be in --client-secret-file. Must be of the same Google Cloud project as --client-id.
            """
        },
        Setting(.bindTokens, default: "no", change: .restart(\.bindsTokens)) {
            """
            Bind the refresh tokens of exchanged codes to a key of the key ring (DPoP), so that a stolen one is useless \
            without that key. Needs 'keys add-binding' once. Bound tokens stay bound if this is switched off.
            """
        },
        Setting(
            .tokenEndpoint,
            placeholder: "URL",
            default: "https://oauth2.googleapis.com/token",
            change: .restart(\.endpoints.token)
        ) {
            "The endpoint that refreshes tokens. Must be https, except on this machine."
        },
        Setting(
            .userinfoEndpoint,
            placeholder: "URL",
            default: "https://openidconnect.googleapis.com/v1/userinfo",
            change: .restart(\.endpoints.userinfo)
        ) {
            "The endpoint that names the owner of an access token."
        },
        Setting(
            .tokeninfoEndpoint,
            placeholder: "URL",
            default: "https://oauth2.googleapis.com/tokeninfo",
            change: .restart(\.endpoints.tokeninfo)
        ) {
            "The endpoint that names the client, scope and lifetime of an access token."
        },
        Setting(
            .revocationEndpoint,
            placeholder: "URL",
            default: "https://oauth2.googleapis.com/revoke",
            change: .restart(\.endpoints.revocation)
        ) {
            "The endpoint that revokes a grant which the user ended."
        },
        Setting(.caFile, placeholder: "FILE", change: .restart(\.caFile)) {
            "Certificates (PEM) to trust instead of the system's, for a proxy or a server of your own."
        },
        Setting(.metricsLog, placeholder: "FILE", default: "-", change: .restart(\.metricsLog)) {
            "The destination of the metrics log, one JSON object per line; - is standard output. A reload reopens it."
        },
        Setting(
            .logSample,
            placeholder: "EVENT=N",
            default: "\(EngineLog.sampledEvent)=1",
            change: .reload(.logs, \.logSample)
        ) {
            """
            The share of \(EngineLog.sampledEvent) in the metrics log: the lines of refreshes that succeeded at the first \
            try and changed nothing else. 100 writes one of a hundred, 0 none, at most 1000000. No other event can be \
            left out. Summaries and metrics count all.
            """
        },
        Setting(.logLevel, placeholder: "LEVEL", default: "notice", change: .reload(.logs, \.logLevel)) {
            "The least severe level that goes to standard error: error, warning, notice, info or debug."
        },
        Setting(.maxRate, placeholder: "N", default: "200", change: .reload(.rate, \.maxRate)) {
            """
            The maximum number of requests per second to the token endpoint for one client id, by all workers on the database \
            together: each takes an equal part. More than 0, at most 100000.
            """
        },
        Setting(.summaryInterval, placeholder: "SECONDS", default: "60", change: .restart(\.summaryInterval)) {
            "The interval of summaries in the metrics log; 1 to 86400."
        },
        Setting(.otlpEndpoint, placeholder: "URL", change: .restart(\.otlpEndpoint)) {
            """
            The OpenTelemetry collector that gets metrics and spans by OTLP over HTTP, such as http://127.0.0.1:4318: \
            /v1/metrics and /v1/traces are added. Must be https, except on this machine. Or the variable \
            OTEL_EXPORTER_OTLP_ENDPOINT. Without either nothing is sent.
            """
        },
        Setting(.stopDeadline, placeholder: "SECONDS", default: "20", change: .restart(\.stopDeadline)) {
            "The time in which a stopping worker can finish requests in flight; 1 to 3600."
        },
        Setting(.forgetEndedAfter, placeholder: "DAYS", change: .restart(\.forgetEndedAfter)) {
            """
            The days (1 to 3650) after which an ended grant loses its tokens, scopes and account, and its user the \
            e-mail address, name and picture, unless the user has signed in since. The user's id here and at Google and \
            the history stay. 'users forget' shows whom. Without it ended grants are kept.
            """
        },
        Setting(.runOnce, default: "no", change: .restart(\.runsOnce)) {
            "Try each due grant once, print a one-line JSON summary and exit: for cron. Five minutes at most."
        },
    ]
}
