extension Setting {
    /// The settings that a reload applies together.
    enum ReloadGroup: CaseIterable, Sendable {
        /// The OAuth clients: the routes accept their tokens, the engine sends their secrets.
        case clients
        case logs
        case rate
    }

    /// The way in which a changed value reaches a running worker, and the place of the value in the configuration.
    struct Change: Sendable {
        /// The group whose reload applies the value, or `nil` if that takes a restart.
        let reloadGroup: ReloadGroup?
        /// `true` if a reload reads the named file again, although another file takes a restart.
        let isFileReadAgain: Bool
        /// Returns `true` if two configurations have different values.
        let differs: @Sendable (Configuration, Configuration) -> Bool
        /// Copies the value if a reload applies it.
        let apply: @Sendable (_ latest: Configuration, _ running: inout Configuration) -> Void

        /// A value that the next start reads.
        static func restart<Value: Equatable & Sendable>(_ path: any KeyPath<Configuration, Value> & Sendable) -> Change
        {
            Change(path)
        }

        /// The path of a file that a reload reads again, while another path is read at the next start.
        static func file<Value: Equatable & Sendable>(_ path: any KeyPath<Configuration, Value> & Sendable) -> Change {
            Change(path, isFileReadAgain: true)
        }

        /// A value that a reload applies.
        static func reload<Value: Equatable & Sendable>(
            _ group: ReloadGroup,
            _ path: any WritableKeyPath<Configuration, Value> & Sendable
        ) -> Change {
            Change(path, group: group) { latest, running in running[keyPath: path] = latest[keyPath: path] }
        }

        private init<Value: Equatable & Sendable>(
            _ path: any KeyPath<Configuration, Value> & Sendable,
            group: ReloadGroup? = nil,
            isFileReadAgain: Bool = false,
            apply: @escaping @Sendable (Configuration, inout Configuration) -> Void = { _, _ in }
        ) {
            reloadGroup = group
            self.isFileReadAgain = isFileReadAgain
            differs = { $0[keyPath: path] != $1[keyPath: path] }
            self.apply = apply
        }

        /// The effect of a reload, for the help, or `nil` if it does not have one.
        var note: String? {
            if reloadGroup != nil { return "A reload applies a change." }
            return isFileReadAgain ? "A reload reads the file again." : nil
        }
    }
}
