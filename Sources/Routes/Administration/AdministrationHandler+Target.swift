internal import Base
internal import HTTPServer
internal import Records
internal import Storage

extension AdministrationHandler {
    /// The connection that an operation is about. A deletion of a user is about all, and a list about those of all
    /// users.
    struct Target {
        let user: String
        let connection: ConnectionID

        init(user: String, connection: ConnectionID) {
            self.user = user
            self.connection = connection
        }

        /// Takes the connection that a request's query names, or the default one.
        init(user: String, query: [ServerRequest.Field], of operation: Operation) throws(ServiceError) {
            try query.checkNames(operation == .deleteUser ? [] : ["connection"])
            self.init(user: user, connection: try query.connection)
        }

        /// Throws if the service may not perform the operation.
        func check(_ operation: Operation, for service: Service) throws(ServiceError) {
            do throws(InputError) {
                _ = try RecordFields.checked(userID: user)
            } catch {
                throw .invalidRequest(error.message)
            }
            // Bytes that are not UTF-8 are decoded as U+FFFD, and would name another user.
            guard !user.unicodeScalars.contains("\u{fffd}") else { throw .invalidRequest("user_id is not UTF-8") }
            guard service.users.covers(user) else { throw .unmanagedUser }
            // A deletion ends all connections of the user.
            let mayDelete = operation != .deleteUser || service.connections == .everything
            guard mayDelete, service.covers(connection) else { throw .forbiddenConnection }
        }
    }
}
