/// The access that a command needs to the database.
///
/// Opening always updates the tables, and stores spilled results unless the database was moved.
enum DatabaseAccess {
    /// Also accepts a full disk, a moved database, and spilled results that cannot be stored.
    case reading
    case changing
    /// As `changing`, but goes on if spilled results cannot be stored.
    case givingUpKeys
}
