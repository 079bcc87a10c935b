/// The variables that a program of a setting gets.
///
/// It gets those of the worker, because a program of a KMS finds its region, its credentials and its proxy there, under
/// names that differ for each. It does not get what is the worker's own: its settings, of which the database address can
/// hold a password, the secret of the app's tokens, the passwords of libpq, and the sockets of systemd.
enum CommandEnvironment {
    private static let ownPrefixes = [Setting.environmentPrefix, "PG", "LISTEN_", "WATCHDOG_"]
    private static let ownNames = [Setting.jwtSecretName, "NOTIFY_SOCKET"]

    /// `home` is the folder of the user as whom this process runs, if root started it.
    static func variables(from environment: [String: String], home: String? = nil) -> [String: String] {
        var variables = environment.filter { name, _ in
            !ownNames.contains(name) && !ownPrefixes.contains { name.hasPrefix($0) }
        }
        if let home { variables["HOME"] = home }
        return variables
    }
}
