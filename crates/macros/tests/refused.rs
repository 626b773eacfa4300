//! What the compiler says to the author of an op that is not right: each file of `refused/` with the text beside it. (`TRYBUILD=overwrite`
//! writes the texts anew.)

#[test]
fn the_authors_mistakes_are_named_where_they_stand() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
