/// The access that a command needs to the database.
enum DatabaseAccess {
    case reading
    case changing
    /// As `changing`, but goes on if spilled results cannot be stored.
    case givingUpKeys
}
