create table if not exists plans (
    customer varchar(100) primary key,
    rate varchar(40) not null,
    capacity bigint not null
);
