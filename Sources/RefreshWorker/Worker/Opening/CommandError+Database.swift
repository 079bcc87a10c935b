import Storage

extension CommandError {
    init(unfinished location: DatabaseLocation) {
        self.init(
            .configuration,
            """
            \(location) holds a part of another database, because a copy was not finished: run the same refresh-worker store copy \
            again, which continues it
            """
        )
    }

    init(missing location: DatabaseLocation) {
        switch location {
        case .file(let path):
            self.init(
                .configuration,
                """
                the database \(path) does not exist or cannot be reached: the worker creates it at its first start; name \
                another with --database
                """
            )
        case .server(let address):
            self.init(
                .configuration,
                """
                \(address) holds no tables of refresh-worker yet: the worker creates them at its first start; name another \
                database with --database
                """
            )
        }
    }
}
