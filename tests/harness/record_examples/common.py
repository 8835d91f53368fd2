"""What records of several kinds hold."""

POPULAR = {
    "hr": 0.45,
    "ndcg": 0.25,
    "hr_device": 0.455,
    "ndcg_device": 0.255,
    "hr_optimistic": 0.46,
    "ndcg_optimistic": 0.26,
    "liked_hr": 0.52,
    "liked_ndcg": 0.31,
    "disliked_hr": 0.44,
    "n_liked": 486,
    "n_disliked": 216,
    "n_users": 943,
    "k": 10,
}


HERE = {"isa": "avx2", "machine": "x86_64", "lightfr": "0.1.0"}
